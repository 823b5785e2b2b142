"""A run against a hostile server ends in time, with exit code 2 and one line that says why."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest

from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Exchange, Mutant, Refused
from conformance.mutants.proxy import proxied
from oe_wire import v1
from tests.conformance.fake_engine import FakeEngine
from tests.hostile.behaviours import HOSTILE
from tests.hostile.http2 import HostileServer

# The run's own limit, and what a loaded machine may take to start Python and to clean up.
READY = 2.0
GENEROUS = 60.0
MEMORY = 2 << 30
PROGRAM = f"""
import resource
resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))
from conformance.cli.main import main
main()
"""


def oe_conform(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which may not use more than MEMORY."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_engine_is_one_clear_line(name: str) -> None:
    """The address, what the server does, and nothing else."""
    hostile = HOSTILE[name]
    with HostileServer(hostile.on_call, hostile.on_connect) as server:
        done = oe_conform("run", "--target", server.address, "--ready-timeout", str(READY))
    lines = [line for line in done.stderr.splitlines() if line.startswith("oe-conform: ")]
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = lines
    assert server.address in line
    assert hostile.said in line
    assert len(line) < 400


async def _never(exchange: Exchange) -> AsyncGenerator[Any, None]:
    """Accept and say nothing until the client gives up."""
    await asyncio.Event().wait()
    yield


async def _for_ever(exchange: Exchange) -> AsyncGenerator[Any, None]:
    """Tokens without end, whatever was asked for."""
    answer = v1.GenerateResponse(request_id=exchange.request.request_id)
    answer.token.output_index = 0
    answer.token.tokens.add(token_id=1)
    while True:
        yield answer


async def _breaks_off(exchange: Exchange) -> AsyncGenerator[Any, None]:
    """End every stream with a reset after its first message."""
    async for message in exchange.upstream():
        yield message
        raise Refused(grpc.StatusCode.UNKNOWN, "gone")


def hostile_generate(behaviour: Any) -> Mutant:
    return Mutant("hostile", "OE-CORE-GEN-001", "hostile", {GENERATE: behaviour})


@pytest.mark.parametrize("behaviour", [_never, _for_ever])
def test_a_time_limit_ends_a_run_whose_calls_do_not(behaviour: Any) -> None:
    """A partial report that says so, and exit code 2."""
    with FakeEngine() as engine, proxied(engine.address, hostile_generate(behaviour)) as front:
        started = time.monotonic()
        done = oe_conform("run", "--target", front, "--time-limit", "3", "-j", "4")
        seconds = time.monotonic() - started
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the run ended early: time_limit" in done.stdout
    assert seconds < GENEROUS


def test_streams_that_break_off_are_a_verdict() -> None:
    """The engine can be judged: it fails, quickly, and nothing is called an error of the suite."""
    with FakeEngine() as engine, proxied(engine.address, hostile_generate(_breaks_off)) as front:
        rows = ("--id", "OE-CORE-STREAM-*", "--budget", "quick")
        done = oe_conform("run", "--target", front, *rows)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fail     OE-CORE-STREAM-012" in done.stdout
    assert "the check itself failed" not in done.stdout
