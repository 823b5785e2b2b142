"""What mutants of load streams are made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest

from conformance.mutants.load_streams import Numbers, kind
from conformance.mutants.mutant import Refused
from conformance.mutants.reading import read_ahead, ticking
from oe_wire import v1

LONG = 20.0


def _response(kind_of: str, lost: int = 0) -> v1.WatchLoadResponse:
    response = v1.WatchLoadResponse(coalesced_events=lost)
    getattr(response, kind_of).SetInParent()
    return response


async def _answers(*items: Any, then: asyncio.Event | None = None) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item
    if then is not None:
        await then.wait()
        yield "late"


async def _refusing(*items: Any) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item
    raise Refused(grpc.StatusCode.INTERNAL)


def test_changed_streams_are_numbered_rightly() -> None:
    """Numbers count what was lost, and heartbeats name the last snapshot."""
    numbers = Numbers()
    sent = [_response("settings"), _response("snapshot"), _response("snapshot", 2)]
    sent += [_response("heartbeat"), _response("error")]
    put = [numbers.put(each) for each in sent]
    assert [each.sequence_number for each in put] == [1, 2, 5, 6, 7]
    assert put[3].heartbeat.last_snapshot_sequence_number == 5
    assert [kind(each) for each in put[3:]] == ["heartbeat", "error"]


def test_ticks_come_while_nothing_else_does() -> None:
    """Answers pass in order; None stands for a while without one."""

    async def run() -> None:
        more = asyncio.Event()
        seen = []
        async with ticking(_answers(1, 2, then=more), 0.001) as answers:
            async for answer in answers:
                seen.append(answer)
                if answer is None:
                    more.set()
        assert seen[:3] == [1, 2, None]
        assert seen[-1] == "late"

    asyncio.run(asyncio.wait_for(run(), LONG))


def test_ticking_can_be_left() -> None:
    """Leaving the block leaves the answers closable at once."""

    async def run() -> None:
        answers = _answers(1, then=asyncio.Event())
        async with ticking(answers, 0.001) as ticks:
            assert [await anext(ticks), await anext(ticks)] == [1, None]
        await answers.aclose()

    asyncio.run(asyncio.wait_for(run(), LONG))


def test_ticking_passes_a_refusal_on() -> None:
    """What the engine raises is raised."""

    async def run() -> None:
        async with ticking(_refusing(1), LONG) as answers:
            async for _ in answers:
                pass

    with pytest.raises(Refused):
        asyncio.run(run())


def test_reading_ahead_takes_what_nobody_asked_for() -> None:
    """All answers are taken, and then what the engine raised is raised."""
    taken: list[Any] = []

    async def run() -> None:
        async with read_ahead(_refusing(1, 2, 3), taken.append) as ahead:
            while not ahead.ended:
                await ahead.arrival()

    with pytest.raises(Refused):
        asyncio.run(asyncio.wait_for(run(), LONG))
    assert taken == [1, 2, 3]


def test_reading_ahead_can_be_left() -> None:
    """Leaving the block ends the task, and what it raised later is nobody's."""

    async def run() -> bool:
        more = asyncio.Event()
        async with read_ahead(_answers(1, then=more), lambda _: None) as ahead:
            await ahead.arrival()
            more.set()
        return ahead.task.done()

    assert asyncio.run(asyncio.wait_for(run(), LONG))
