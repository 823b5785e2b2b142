"""One token per row of logits: penalties, masks, then the best token or a draw."""

from collections.abc import Sequence as SequenceOf

import torch
from torch import Tensor

from reference_engine.engine.draw import draw
from reference_engine.engine.fused_logits import adjust
from reference_engine.engine.penalties import penalise
from reference_engine.engine.sequence import Sequence
from reference_engine.engine.token_mask import TokenMasks, masked_out
from reference_engine.engine.uniform import uniform
from reference_engine.kernels.dispatch import kernels_for
from reference_engine.model.best import best_token


class Sampler:
    """Draws tokens. eos_token_ids are masked where a request must not end yet."""

    def __init__(self, eos_token_ids: frozenset[int]) -> None:
        self._eos_token_ids = eos_token_ids

    @torch.inference_mode()
    def sample(
        self, logits: Tensor, sequences: SequenceOf[Sequence], masks: TokenMasks | None = None
    ) -> list[int]:
        """The next token of each sequence; logits is float32 [rows, vocab], unchanged afterwards.

        masks are the grammars' say, at least one token each. Where a grammar allows nothing but
        to end, the output ends even if it has fewer tokens than asked for.
        """
        vocabulary = logits.shape[1]
        # A stop token outside the vocabulary is legal, it just never comes.
        banned = [
            (row, token)
            for row, one in enumerate(sequences)
            for token in self._banned(one)
            if token < vocabulary
        ]
        penalised = [row for row, one in enumerate(sequences) if one.request.sampling.penalised]
        if penalised or masks:
            logits = logits.clone()
            if logits.is_cuda:
                adjust(kernels_for(logits.device), logits, sequences, penalised, masks)
            else:
                _adjust(logits, sequences, penalised, masks)
        if not banned:
            return _sampled(logits, sequences)
        places = torch.tensor(banned, device=logits.device).unbind(1)
        before = logits[places]
        _ban(logits, places, guided=masks is not None)
        tokens = _sampled(logits, sequences)
        logits[places] = before
        return tokens

    def _banned(self, sequence: Sequence) -> frozenset[int]:
        stopping = sequence.request.stopping
        if sequence.num_output < stopping.min_tokens:
            return self._eos_token_ids | stopping.stop_token_ids
        if stopping.ignore_eos:
            return self._eos_token_ids - stopping.stop_token_ids
        return frozenset()


def _sampled(logits: Tensor, sequences: SequenceOf[Sequence]) -> list[int]:
    """The best token of greedy rows, a draw for the others."""
    greedy = [row for row, one in enumerate(sequences) if one.request.sampling.greedy]
    drawn = [row for row, one in enumerate(sequences) if not one.request.sampling.greedy]
    tokens = [0] * len(sequences)
    if greedy:
        for row, token in zip(greedy, best_token(_rows(logits, greedy)).tolist(), strict=True):
            tokens[row] = token
    if drawn:
        samplings = [sequences[row].request.sampling for row in drawn]
        numbers = [_number(sequences[row]) for row in drawn]
        found = draw(_rows(logits, drawn), samplings, numbers)
        for row, token in zip(drawn, found, strict=True):
            tokens[row] = token
    return tokens


def _adjust(
    logits: Tensor,
    sequences: SequenceOf[Sequence],
    penalised: list[int],
    masks: TokenMasks | None,
) -> None:
    """Penalties, then grammar masks, in place."""
    if penalised:
        penalise(logits, penalised, [sequences[row] for row in penalised])
    if masks:
        index = torch.tensor(masks.rows, device=logits.device)
        refused = masked_out(masks.bits.to(logits.device), logits.shape[1])
        logits[index] = logits[index].masked_fill(refused, -torch.inf)


def _ban(logits: Tensor, places: tuple[Tensor, ...], *, guided: bool) -> None:
    """Mask places, rows and tokens, except in guided rows that would have nothing left."""
    before = logits[places]
    logits[places] = -torch.inf
    if guided:
        rows, tokens = places
        stuck = (logits.amax(dim=1) == -torch.inf)[rows]
        logits[rows[stuck], tokens[stuck]] = before[stuck]


def _rows(logits: Tensor, rows: list[int]) -> Tensor:
    return logits if len(rows) == logits.shape[0] else logits[rows]


def _number(sequence: Sequence) -> float:
    seed = sequence.request.sampling.seed
    return uniform(seed, sequence.output_index, sequence.num_output)
