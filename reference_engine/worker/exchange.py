"""Waits for work on behalf of a caller: until it is done, the budget is used up, or he is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from reference_engine.worker.arrival import gone

Result = TypeVar("Result")


class CallerGoneError(Exception):
    """Nobody waits for the answer any more."""


class DroppedError(Exception):
    """The work ended without a result; the cause says how."""


async def awaited(request: Request, work: Coroutine[Any, Any, Result], deadline: float) -> Result:
    """The result of `work`, which is cancelled in every other case.

    Raises TimeoutError at the deadline, CallerGoneError, and DroppedError when the work raised.
    """
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(work)
    leaving = asyncio.create_task(gone(request))
    try:
        await asyncio.wait(
            (running, leaving),
            timeout=max(0.0, deadline - loop.time()),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if running.done():
            return _result(running)
        if leaving.done():
            raise CallerGoneError
        raise TimeoutError
    finally:
        running.cancel()
        leaving.cancel()


def _result(running: asyncio.Task[Result]) -> Result:
    if running.cancelled():
        raise DroppedError("cancelled")
    error = running.exception()
    if error is not None:
        raise DroppedError(type(error).__name__) from error
    return running.result()
