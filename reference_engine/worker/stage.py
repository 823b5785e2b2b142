"""Puts a worker into states on demand and counts what it was asked; for test runs only.

POST replaces the stage: {"readiness", "reason", "work", "text", "measured", "release"}, all
optional. Each POST and GET answers with what has been counted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reference_engine.worker.contract import (
    Answer,
    Busy,
    InferenceFailed,
    InvalidRequest,
    Outcome,
    Readiness,
    Report,
    Unavailable,
    Worker,
)
from reference_engine.worker.queue import Decide
from reference_engine.worker.reply import AsciiJson, error

# Done by the decision, so behind the queue; the others are refusals of the worker itself.
_DECIDED = ("real", "echo", "hold", "invalid", "fail")
WORKS = (*_DECIDED, "busy", "unavailable", "drop")


class _DropError(Exception):
    """The worker loses the request, as staged."""


@dataclass(frozen=True, slots=True)
class Stage:
    """readiness: None is the real one. measured: whether the queue's state is reported."""

    readiness: Readiness | None = None
    reason: str = ""
    work: str = "real"
    text: str = ""
    measured: bool = True


class StagedWorker(Worker):
    """A worker in front of another one; without a stage it changes nothing."""

    def __init__(self, inner: Worker) -> None:
        self._inner = inner
        self._stage = Stage()
        self._released = asyncio.Event()
        self._asked = 0
        self._held = 0
        self._last: dict[str, Any] = {}

    def staged(self, decide: Decide) -> Decide:
        """The decision with what the stage does instead."""

        async def decided(body: bytes) -> Outcome:
            match self._stage.work:
                case "echo":
                    return Answer(body)
                case "hold":
                    return await self._hold(body)
                case "invalid":
                    return InvalidRequest(self._stage.text)
                case "fail":
                    return InferenceFailed()
                case _:
                    return await decide(body)

        return decided

    async def _hold(self, body: bytes) -> Outcome:
        self._held += 1
        try:
            await self._released.wait()
        finally:
            self._held -= 1
        return Answer(body)

    def readiness(self) -> Readiness:
        return self._stage.readiness or self._inner.readiness()

    def failure(self) -> str | None:
        return self._stage.reason if self._stage.readiness else self._inner.failure()

    def report(self) -> Report | None:
        return self._inner.report() if self._stage.measured else None

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        self._asked += 1
        self._last = {
            "bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "remaining_ms": int(1000 * (deadline - asyncio.get_running_loop().time())),
        }
        match self._stage.work:
            case "busy":
                return Busy()
            case "unavailable":
                return Unavailable()
            case "drop":
                raise _DropError
        outcome = await self._inner.submit(body, deadline)
        if isinstance(outcome, Answer) and not self._stage.measured:
            return Answer(outcome.body)
        return outcome

    def release(self) -> None:
        """Let go of everything that is held."""
        released, self._released = self._released, asyncio.Event()
        released.set()

    def routes(self, path: str) -> tuple[Route, ...]:
        """The routes that set the stage and tell the counts."""
        return (
            Route(path, self._set, methods=["POST"]),
            Route(path, self._count, methods=["GET"]),
        )

    async def _set(self, request: Request) -> Response:
        try:
            stage, release = _stage_of(await request.body())
        except (ValueError, TypeError, AttributeError) as problem:
            return error(400, f"no stage: {type(problem).__name__}")
        self._stage = stage
        if release:
            self.release()
        return self._counts()

    async def _count(self, _: Request) -> Response:
        return self._counts()

    def _counts(self) -> Response:
        return AsciiJson({"asked": self._asked, "held": self._held, "last": self._last})


def _stage_of(body: bytes) -> tuple[Stage, bool]:
    """The stage in a request, and whether what is held is let go."""
    value = json.loads(body)
    release = bool(value.pop("release", False))
    readiness = value.pop("readiness", None)
    stage = Stage(readiness=None if readiness in {None, "ready"} else Readiness(readiness), **value)
    if stage.work not in WORKS:
        raise ValueError(stage.work)
    return stage, release
