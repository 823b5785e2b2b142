"""Answers of pure readers, kept with what was read: many laws ask the same of one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar


class Remembers(Protocol):
    """A value that never changes. known: what its readers have found, by reader."""

    @property
    def known(self) -> dict[Any, Any]: ...


ValueT = TypeVar("ValueT", bound=Remembers)
AnswerT = TypeVar("AnswerT")


def remembered(read: Callable[[ValueT], AnswerT]) -> Callable[[ValueT], AnswerT]:
    """The same reader, which reads each value once. Nobody may change what it returns."""

    @wraps(read)
    def reader(value: ValueT) -> AnswerT:
        known = value.known
        if read not in known:
            known[read] = read(value)
        answer: AnswerT = known[read]
        return answer

    return reader
