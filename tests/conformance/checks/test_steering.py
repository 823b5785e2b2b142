"""The way back out of a state, which all later checks depend on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest

from conformance.checks.steering import undo
from conformance.mutants.mutant import Exchange, Mutant
from conformance.mutants.proxy import proxied
from conformance.wire.pace import Pace
from oe_wire import v1
from tests.conformance.fake_engine import FakeEngine
from tests.conformance.run_check import probing

INFO = "openengine.v1.Control/GetServerInfo"
ROW = "OE-CORE-GEN-001"


class _Silent:
    """Lets the first calls wait for ever."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.seen = 0

    async def __call__(self, exchange: Exchange) -> AsyncGenerator[Any, None]:
        self.seen += 1
        if self.seen <= self.calls:
            await asyncio.Event().wait()
        async for message in exchange.upstream():
            yield message


@pytest.mark.parametrize(
    ("silent", "code", "calls"),
    [
        (0, grpc.StatusCode.OK, 1),
        (1, grpc.StatusCode.OK, 2),
        (2, grpc.StatusCode.DEADLINE_EXCEEDED, 2),
    ],
)
def test_the_way_back_is_tried_twice(silent: int, code: grpc.StatusCode, calls: int) -> None:
    """One answer that does not come in time leaves no state behind; an engine that never answers
    is not asked for ever.
    """
    behaviour = _Silent(silent)
    mutant = Mutant("silent", ROW, "does not answer", {INFO: behaviour})
    with (
        FakeEngine() as engine,
        proxied(engine.address, mutant) as front,
        probing(engine, ROW, address=front, pace=Pace(slow_factor=0.2)) as probe,
    ):
        call = undo(probe, INFO, v1.GetServerInfoRequest())
    assert call.ending.code is code
    assert behaviour.seen == calls
