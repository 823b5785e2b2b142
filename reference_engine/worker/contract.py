"""What a worker implements to be served: whether it takes work, and work with its one outcome.

The transport hands bytes over and gets bytes back; it parses nothing of a request. Deadlines are
in the seconds of the event loop's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Readiness(Enum):
    """Whether work may be sent. A failed worker goes on running, so that its reason can be read."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """State of the queue, told by its owner; None is not measured, which is not zero.

    depth: requests accepted and not completed. capacity: depth at which admission refuses.
    rejected: requests refused for lack of room, or accepted and dropped because the caller had
    gone; it never falls.
    """

    depth: int | None = None
    capacity: int | None = None
    rejected: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The response's bytes. depth: of the queue when the request was admitted, itself included."""

    body: bytes
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """The caller's fault; text says which, and may hold anything that a string can."""

    text: str


@dataclass(frozen=True, slots=True)
class Busy:
    """There was no room."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The worker cannot take work, or no longer can."""


@dataclass(frozen=True, slots=True)
class InferenceFailed:
    """The decision was begun and failed."""


Outcome = Answer | InvalidRequest | Busy | Unavailable | InferenceFailed


class Worker(Protocol):
    """What is served. Cancelling `submit` is how a caller says that it has gone or given up."""

    def readiness(self) -> Readiness:
        """Whether work may be sent now; asked on every request, so it never waits."""

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        """Take one request and come to exactly one outcome; a refusal is one too. An exception
        means that the worker lost the request.
        """

    def report(self) -> Report | None:
        """State of the queue; None from a worker that measures nothing."""
        return None

    def failure(self) -> str | None:
        """Why the worker has failed, word for word; None while it has not."""
        return None
