"""The check of readers that do not read, on a fake engine that watches no reader at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.checks.core.stream_cases import prose
from conformance.checks.core.stream_stall import Stall, _judge_short, stalled_reader
from conformance.checks.violation import NotJudged, Violation
from conformance.model.case import Case
from conformance.wire.transcript import Event, Transcript
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, Stream
from tests.conformance.fake_rules import capabilities
from tests.conformance.run_check import Outcome, probing, run_check

LIMIT_MS = 400
# What a write may take before the engine thinks that nobody reads.
BLOCKED = 0.2


def outcome_of(stall: str, spoil: Callable[..., Stream] | None = None) -> Outcome:
    """One of the two cases, on an engine that advertises LIMIT_MS."""
    scope = capabilities()
    scope.core.response_stall_timeout_ms = LIMIT_MS
    only = replace(
        stalled_reader,
        table=lambda declared: [
            case
            for case in (stalled_reader.table or (lambda _: ()))(declared)
            if case.params["stall"] == stall
        ],
    )
    with FakeEngine(Behaviour(capabilities=scope, spoil=spoil)) as engine:
        return run_check(engine, only)


def ending(code: int, *, retryable: bool, bulk: int = 0) -> Callable[..., Stream]:
    """Long streams end with an error once a write took too long; bulk: bytes in each message."""

    def spoil(request: v1.GenerateRequest, stream: Stream) -> Stream:
        long = request.stopping.max_tokens > 64
        for response in stream:
            if long and response.HasField("token"):
                response.token.text += "x" * bulk
            start = time.monotonic()
            yield response
            if long and code and time.monotonic() - start > BLOCKED:
                error = v1.EngineError(code=code, message="nobody reads", retryable=retryable)
                yield v1.GenerateResponse(request_id=request.request_id, error=error)
                return

    return spoil


def test_engine_that_ends_a_stalled_stream_as_overloaded_passes() -> None:
    """After the limit the reader finds EngineError OVERLOADED, which it may retry."""
    spoil = ending(v1.ERROR_CODE_OVERLOADED, retryable=True, bulk=4096)
    outcome = outcome_of("long", spoil)
    assert outcome.passed, (outcome.violation, outcome.skips)


def test_another_error_fails() -> None:
    """A stall is no fault of the engine, and no reason not to try again."""
    for code, retryable in ((v1.ERROR_CODE_INTERNAL, True), (v1.ERROR_CODE_OVERLOADED, False)):
        assert outcome_of("long", ending(code, retryable=retryable, bulk=4096)).failed


def test_engine_that_never_looks_fails() -> None:
    """All of a long stream comes after the stall, though nobody read for longer than the limit."""
    assert outcome_of("long", ending(0, retryable=False, bulk=4096)).failed


def test_stream_that_fits_into_the_windows_says_nothing() -> None:
    """What the transport holds, the engine has no reason to miss."""
    outcome = outcome_of("long")
    assert not outcome.passed
    assert not outcome.failed


def test_short_stall_is_no_reason_to_end() -> None:
    """A stream goes on after a stall within the limit; one that was ended fails."""
    assert outcome_of("short").passed
    assert outcome_of("short", ending(0, retryable=False, bulk=4096)).passed


def test_reader_that_the_machine_held_up_says_nothing() -> None:
    """An end after a longer silence than the check meant is no breach; one after the stall is."""
    with FakeEngine(Behaviour()) as engine, probing(engine, stalled_reader.requirement) as probe:
        other = probe.generate(Case(prose(engine.declared)))
        for seconds, expected in ((LIMIT_MS / 1000, NotJudged), (0.15, Violation)):
            stall = Stall(_ended_after(other, seconds), before=1, seconds=0.1, other=other)
            with pytest.raises(expected):
                _judge_short(probe, stall, LIMIT_MS / 1000)


def _ended_after(stream: Transcript, seconds: float) -> Transcript:
    """The first message of a stream, and EngineError OVERLOADED so many seconds later."""
    error = v1.EngineError(code=v1.ERROR_CODE_OVERLOADED, message="nobody reads", retryable=True)
    first = Event(0.0, stream.messages[0])
    return replace(stream, events=(first, Event(seconds, v1.GenerateResponse(error=error))))
