"""The decision: option scores are the model's own probabilities."""

from __future__ import annotations

import json
import math

import pytest

from reference_engine.engine.build import build_core
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.output import TokensProduced
from reference_engine.engine.request import (
    CandidateMode,
    CandidateSelection,
    Request,
    Sampling,
    Scoring,
    Stopping,
)
from reference_engine.model.load import load_model
from reference_engine.worker.contract import Answer, InvalidRequest
from reference_engine.worker.decision import Decider

CONFIG = EngineConfig(num_blocks=64, max_running=4)


@pytest.fixture(scope="module")
def loaded():
    return load_model("tiny")


@pytest.fixture(scope="module")
def decider(loaded):
    return Decider(loaded, CONFIG)


def decide(decider: Decider, **question: object) -> dict:
    outcome = decider.decide(json.dumps(question).encode())
    assert isinstance(outcome, Answer), outcome
    return json.loads(outcome.body)


def next_token_logprob(loaded, prompt: list[int], token: int) -> float:
    """From the candidates of a generated token: another way to the same number."""
    core = build_core(loaded, CONFIG)
    asked = CandidateSelection(CandidateMode.TOKEN_IDS, token_ids=(token,))
    scoring = Scoring(output=True, output_candidates=asked)
    greedy = Sampling(seed=0, temperature=0.0)
    core.add(Request(tuple(prompt), greedy, Stopping(max_tokens=1), scoring))
    while core.busy:
        for _, event in core.step():
            if isinstance(event, TokensProduced):
                return event.tokens[0].score.candidates.logprobs[0]
    raise AssertionError("no token")


def test_choice_scores_are_sums_over_the_option(decider, loaded):
    """Token by token, each after the prompt and the tokens before it."""
    found = decide(decider, kind="choice", prompt="The sky is", options=["blue", "very green"])
    prompt = loaded.tokenizer.encode("The sky is", add_special_tokens=True)
    for option in found["options"]:
        tokens = loaded.tokenizer.encode(" " + option["text"])
        expected = sum(
            next_token_logprob(loaded, prompt + tokens[:place], token)
            for place, token in enumerate(tokens)
        )
        assert option["logprob"] == pytest.approx(expected, abs=1e-4)
    best = max(found["options"], key=lambda option: option["logprob"])
    assert found["answer"] == best["text"]
    assert sum(option["probability"] for option in found["options"]) == pytest.approx(1.0)


def test_order_and_company_of_options_do_not_matter(decider):
    """An option's score is its own."""
    one = decide(decider, kind="choice", prompt="Pick:", options=["red", "green", "blue"])
    two = decide(decider, kind="choice", prompt="Pick:", options=["blue", "red"])
    scores = {option["text"]: option["logprob"] for option in one["options"]}
    assert {option["text"]: option["logprob"] for option in two["options"]} == {
        text: scores[text] for text in ("red", "blue")
    }


def test_yes_or_no_and_score(decider):
    """A truth value, and a number with its expectation."""
    assert decide(decider, kind="yes_no", prompt="Is it?")["answer"] in {True, False}
    found = decide(decider, kind="score", prompt="How much?", low=-1, high=2)
    expected = sum(int(option["text"]) * option["probability"] for option in found["options"])
    assert found["answer"] in range(-1, 3)
    assert math.isclose(found["expected"], expected)


def test_what_is_too_long_is_invalid(decider):
    """And the next question is answered."""
    outcome = decider.decide(json.dumps({"kind": "yes_no", "prompt": "word " * 5000}).encode())
    assert isinstance(outcome, InvalidRequest)
    assert "tokens" in outcome.text
    assert decide(decider, kind="yes_no", prompt="Is it?")
