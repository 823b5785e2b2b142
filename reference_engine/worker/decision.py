"""Decides a question with a language model: how likely each option is after the prompt."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from reference_engine.engine.build import build_core, window_of
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.core import EngineCore, OpenRequest
from reference_engine.engine.output import PromptScored, RequestFailed
from reference_engine.engine.request import Request, Sampling, Scoring, Stopping
from reference_engine.errors import ModelError
from reference_engine.model.load import LoadedModel
from reference_engine.worker.contract import Answer, InvalidRequest, Outcome
from reference_engine.worker.questions import BadQuestionError, Question, parse_question

_GREEDY = Sampling(seed=0, temperature=0.0)
# One token has to be generated for a request to be one; it is not looked at.
_ONE_TOKEN = Stopping(max_tokens=1)


class Decider:
    """A model and an engine core of its own. One thread at a time may call it."""

    def __init__(self, loaded: LoadedModel, config: EngineConfig) -> None:
        self._tokenizer = loaded.tokenizer
        self._window = window_of(loaded, config)
        self._core: EngineCore = build_core(loaded, config)

    def decide(self, body: bytes) -> Outcome:
        """Answer one question. Raises ModelError when the model fails."""
        try:
            question = parse_question(body)
            logprobs = self._logprobs(question)
        except BadQuestionError as error:
            return InvalidRequest(str(error))
        text = json.dumps(_answer(question, logprobs), allow_nan=False)
        return Answer(text.encode("ascii"))

    def _logprobs(self, question: Question) -> list[float]:
        """Natural log probability of each option: the sum over its tokens, given the prompt."""
        prompt = tuple(self._tokenizer.encode(question.prompt, add_special_tokens=True))
        if not prompt:
            raise BadQuestionError("prompt: expected a text with at least one token")
        space = "" if question.prompt[-1].isspace() else " "
        requests = []
        for option in question.options:
            tokens = tuple(self._tokenizer.encode(space + option))
            if not tokens:
                raise BadQuestionError("options: expected texts with at least one token")
            if len(prompt) + len(tokens) >= self._window:
                raise BadQuestionError(f"prompt: with an option it is over {self._window} tokens")
            scoring = Scoring(prompt_start=len(prompt))
            requests.append(Request(prompt + tokens, _GREEDY, _ONE_TOKEN, scoring))
        return self._scores(requests)

    def _scores(self, requests: Sequence[Request]) -> list[float]:
        opened = [self._core.add(request) for request in requests]
        sums: dict[int, float] = {}
        while self._core.busy:
            for request, event in self._core.step():
                _note(opened, request, event, sums)
        if len(sums) != len(opened):
            raise ModelError(f"{len(opened)} options, {len(sums)} scores")
        return [sums[number] for number in range(len(opened))]


def _note(
    opened: Sequence[OpenRequest], request: OpenRequest, event: object, sums: dict[int, float]
) -> None:
    match event:
        case PromptScored(tokens):
            scores = [token.score for token in tokens if token.score is not None]
            sums[opened.index(request)] = sum(score.logprob for score in scores)
        case RequestFailed(message):
            raise ModelError(message)


def _answer(question: Question, logprobs: Sequence[float]) -> dict[str, Any]:
    probabilities = _shares(logprobs)
    best = max(range(len(logprobs)), key=logprobs.__getitem__)
    found: dict[str, Any] = {
        "kind": question.kind,
        "answer": question.values[best],
        "options": [
            {"text": text, "logprob": logprob, "probability": probability}
            for text, logprob, probability in zip(
                question.options, logprobs, probabilities, strict=True
            )
        ],
    }
    if question.kind == "score":
        weighted = zip(question.values, probabilities, strict=True)
        found["expected"] = sum(value * probability for value, probability in weighted)
    return found


def _shares(logprobs: Sequence[float]) -> list[float]:
    """Probabilities among the options alone; they add up to 1."""
    highest = max(logprobs)
    weights = [math.exp(value - highest) for value in logprobs]
    return [weight / sum(weights) for weight in weights]
