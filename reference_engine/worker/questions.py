"""Questions as JSON, and the options among which a model decides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MAX_OPTIONS = 64
YES, NO = "Yes", "No"
_FIELDS = {
    "choice": {"kind", "prompt", "options"},
    "yes_no": {"kind", "prompt"},
    "score": {"kind", "prompt", "low", "high"},
}


class BadQuestionError(Exception):
    """The request is no question; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Question:
    """kind: choice, yes_no or score. values: what each option stands for in the answer."""

    kind: str
    prompt: str
    options: tuple[str, ...]
    values: tuple[Any, ...]


def parse_question(body: bytes) -> Question:
    """The question in a request body. Raises BadQuestionError."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadQuestionError("the body is no JSON") from error
    if not isinstance(value, dict):
        raise BadQuestionError("the body is no JSON object")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise BadQuestionError(f"kind: expected one of {', '.join(_FIELDS)}")
    if value.keys() != _FIELDS[kind]:
        fields = ", ".join(sorted(_FIELDS[kind]))
        raise BadQuestionError(f"a {kind} question has the fields {fields}")
    prompt = _text(value, "prompt")
    match kind:
        case "choice":
            options = _options(value["options"])
            return Question(kind, prompt, options, options)
        case "yes_no":
            return Question(kind, prompt, (YES, NO), (True, False))
        case _:
            numbers = _range(value["low"], value["high"])
            return Question(kind, prompt, tuple(map(str, numbers)), numbers)


def _text(value: dict[str, Any], name: str) -> str:
    text = value[name]
    if not isinstance(text, str) or not text or not _encodable(text):
        raise BadQuestionError(f"{name}: expected a non-empty text without lone surrogates")
    return text


def _options(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_OPTIONS:
        raise BadQuestionError(f"options: expected a list of 2 to {MAX_OPTIONS} texts")
    if not all(isinstance(each, str) and each and _encodable(each) for each in value):
        raise BadQuestionError("options: expected non-empty texts without lone surrogates")
    if len(set(value)) != len(value):
        raise BadQuestionError("options: expected texts that all differ")
    return tuple(value)


def _range(low: Any, high: Any) -> tuple[int, ...]:
    for name, number in (("low", low), ("high", high)):
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > 1000:
            raise BadQuestionError(f"{name}: expected a whole number from -1000 to 1000")
    if not 1 <= high - low < MAX_OPTIONS:
        raise BadQuestionError(f"high: expected 1 to {MAX_OPTIONS - 1} more than low")
    return tuple(range(low, high + 1))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
