import pytest
import torch

from reference_engine.engine.fused_logits import adjust, bitmask_of
from reference_engine.engine.output_text import OutputText
from reference_engine.engine.request import Request, Sampling
from reference_engine.engine.sampler import _adjust
from reference_engine.engine.sequence import Sequence
from reference_engine.engine.token_mask import TokenMasks
from reference_engine.kernels.dispatch import TORCH
from tests.reference_engine.engine.fakes import ByteTokenizer

VOCABULARY = 75


def sequence(output: tuple[int, ...] = (), **sampling: float) -> Sequence:
    request = Request((1, 2, 2), Sampling(seed=0, **sampling))
    text = OutputText(ByteTokenizer(), request.stopping)
    return Sequence(request, 0, 0, text, 99, [*request.prompt, *output])


def test_one_kernel_does_what_the_calls_do() -> None:
    """Penalties and masks of a mixed batch, masks short of the vocabulary included."""
    sequences = [
        sequence((3, 3, 74)),
        sequence((3, 3, 74), repetition_penalty=1.3, frequency_penalty=0.5),
        sequence((1,), presence_penalty=-1.0),
        sequence(),
    ]
    masks = TokenMasks((1, 3), torch.tensor([[0x0F0F0F0F, -1], [5, -2147483648]]).int())
    logits = torch.randn(4, VOCABULARY, generator=torch.Generator().manual_seed(0)) * 5
    found, expected = logits.clone(), logits.clone()
    adjust(TORCH, found, sequences, [1, 2], masks)
    _adjust(expected, sequences, [1, 2], masks)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-5)
    assert torch.equal(found[0], logits[0])


@pytest.mark.parametrize("penalty", [1e308, -1e308])
def test_penalties_beyond_float32(penalty: float) -> None:
    """The largest legal penalties leave finite logits."""
    logits = torch.randn(1, VOCABULARY)
    adjust(TORCH, logits, [sequence((3,), frequency_penalty=penalty)], [0], None)
    assert torch.isfinite(logits).all()


def test_rows_without_a_grammar_allow_everything() -> None:
    """Only the listed rows are masked, there also what lies beyond the mask's words."""
    bits = bitmask_of(TokenMasks((1,), torch.tensor([[6]]).int()), 2, VOCABULARY)
    assert bits.tolist() == [[-1, -1, -1], [6, 0, 0]]
