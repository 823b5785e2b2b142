"""The scripted model answers as its scripts say, in both of its forms."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from conformance.runtimes.script import BAD, COIN_PROMPT, EMO, HEADS, LOOP, RUN, TAILS, Script
from reference_engine.model.load import LoadedModel, load_model
from tools.scripted_model import GGUF_NAME, HF_NAME, SIZE, write_scripted

FORMS = (HF_NAME, GGUF_NAME)


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripted")
    write_scripted(folder)
    return folder


@pytest.fixture(name="loaded", scope="module", params=FORMS)
def fixture_loaded(request: pytest.FixtureRequest, folder: Path) -> LoadedModel:
    return load_model(str(folder / request.param))


def attend(layer: int, qk: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Nothing: what attention adds is multiplied by zero in this model."""
    return torch.zeros_like(qk[:, : -v.shape[1]])


def logits_after(loaded: LoadedModel, ids: list[int]) -> Tensor:
    """Logits of the token after the last one."""
    states = loaded.model.hidden_states(torch.tensor(ids), torch.arange(len(ids)), attend)
    return loaded.model.logits(states)[-1]


def prompt_ids(loaded: LoadedModel, prompt: str) -> list[int]:
    """The prompt as a chat of one message."""
    text = loaded.tokenizer.chat_prompt([{"role": "user", "content": prompt}])
    assert text == prompt
    return loaded.tokenizer.encode(text)


@pytest.mark.parametrize("script", [RUN, EMO, LOOP, BAD], ids=["run", "emo", "loop", "bad"])
def test_a_script_is_answered(loaded: LoadedModel, script: Script) -> None:
    """The greedy tokens are the script's, each at p = 0.99687, and then comes the end or not."""
    ids = prompt_ids(loaded, script.prompt)
    words = [loaded.tokenizer.token_bytes(i) for i in range(SIZE)]
    for wanted in script.tokens[:14]:
        logits = logits_after(loaded, ids)
        best = int(logits.argmax())
        assert words[best] == wanted
        assert math.isclose(logits.softmax(-1)[best].item(), 0.99687, abs_tol=2e-4)
        ids.append(best)
    ends = int(logits_after(loaded, ids).argmax()) in loaded.config.eos_token_ids
    assert ends is script.ends


def test_a_coin_has_two_sides(loaded: LoadedModel) -> None:
    """Both words are equally likely, and nothing else is."""
    logits = logits_after(loaded, prompt_ids(loaded, COIN_PROMPT))
    likely, sides = logits.softmax(-1).topk(2)
    words = {loaded.tokenizer.token_bytes(int(side)) for side in sides}
    assert words == {HEADS.encode(), TAILS.encode()}
    assert math.isclose(likely[0].item(), 0.5, abs_tol=1e-6)
    assert likely[0].item() == likely[1].item()


def test_the_bytes_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    """Two runs write the same files."""
    write_scripted(tmp_path)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert len(names) == 6
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_both_forms_are_one_model(folder: Path) -> None:
    """The weights and the tokens are equal."""
    first, second = (load_model(str(folder / form)) for form in FORMS)
    named = dict(second.model.named_parameters())
    for name, weight in first.model.named_parameters():
        assert torch.equal(weight, named[name]), name
    text = "Please RUN, caf\u00e9 \U0001f600 ping\n\n 12"
    assert first.tokenizer.encode(text) == second.tokenizer.encode(text)
