"""Checks of Abort against a right engine and engines that break one rule each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from oe_wire import v1
from tests.conformance.checks.core.engine_stub import (
    StubEngine,
    cancelled,
    declared_by,
    end,
    failure,
    legacy,
    refuse,
    token,
    verdict,
)

ROWS = [f"ABORT-{number:03}" for number in (*range(1, 9), 11)]
LEGACY_ROWS = [row for row in ROWS if row not in {"ABORT-006", "ABORT-011"}]
Change = Callable[[StubEngine], None]
Stream = Iterator[v1.GenerateResponse]


def _abort_says(status: int) -> Change:
    def change(engine: StubEngine) -> None:
        engine.replies["Control/Abort"] = lambda _request, _context: v1.AbortResponse(status=status)

    return change


def _after_real_abort(status: int) -> Change:
    """Abort as a right engine does, and answer something else."""

    def change(engine: StubEngine) -> None:
        def reply(request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
            engine.abort(request)
            return v1.AbortResponse(status=status)

        engine.replies["Control/Abort"] = reply

    return change


def _refused(code: grpc.StatusCode) -> Change:
    def change(engine: StubEngine) -> None:
        engine.replies["Control/Abort"] = refuse(code)

    return change


def _unknown_finished(engine: StubEngine) -> None:
    """Unknown ids count as finished, as on shipped v0.1.0 servers."""

    def reply(request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
        if request.request_id in engine.active:
            return engine.abort(request)
        return v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)

    engine.replies["Control/Abort"] = reply


def _ends(stream: Callable[[v1.GenerateRequest, set[int]], Stream]) -> Change:
    def change(engine: StubEngine) -> None:
        engine.after_abort = stream

    return change


def _hangs(engine: StubEngine) -> None:
    def stream(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
        engine.closing.wait(30)
        yield from cancelled(request, outputs)

    engine.after_abort = stream


def _no_terminal(_request: v1.GenerateRequest, _outputs: set[int]) -> Stream:
    yield from ()


def _one_terminal(request: v1.GenerateRequest, _outputs: set[int]) -> Stream:
    yield end(request, 0, v1.FINISH_REASON_CANCELLED, last=True)


def _two_terminals(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
    yield end(request, 0, v1.FINISH_REASON_CANCELLED, last=False)
    yield from cancelled(request, outputs)


def _length(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
    for index in outputs:
        yield end(request, index, v1.FINISH_REASON_LENGTH, last=index == max(outputs))


def _no_usage(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
    for index in outputs:
        yield end(request, index, v1.FINISH_REASON_CANCELLED, last=False)


def _cancelled_error(request: v1.GenerateRequest, _outputs: set[int]) -> Stream:
    yield failure(request, v1.ERROR_CODE_CANCELLED)


def _internal_error(request: v1.GenerateRequest, _outputs: set[int]) -> Stream:
    yield failure(request, v1.ERROR_CODE_INTERNAL)


def _error_after_terminals(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
    yield from cancelled(request, outputs)
    yield failure(request, v1.ERROR_CODE_CANCELLED)


def _late_tokens(request: v1.GenerateRequest, outputs: set[int]) -> Stream:
    yield from cancelled(request, outputs)
    yield token(request, 0)


def _tokens_after_error(request: v1.GenerateRequest, _outputs: set[int]) -> Stream:
    yield failure(request, v1.ERROR_CODE_CANCELLED)
    yield token(request, 0)


def _status_cancelled(engine: StubEngine) -> None:
    def reply(request: v1.GenerateRequest, context: Any) -> Stream:
        yield from engine.generate(request)
        context.abort(grpc.StatusCode.CANCELLED, "aborted")

    engine.replies["Inference/Generate"] = reply


def _second_abort_internal(engine: StubEngine) -> None:
    seen: set[str] = set()

    def reply(request: v1.AbortRequest, context: Any) -> v1.AbortResponse:
        if request.request_id in seen:
            context.abort(grpc.StatusCode.INTERNAL, "broken")
        seen.add(request.request_id)
        return engine.abort(request)

    engine.replies["Control/Abort"] = reply


def _prefix_match(engine: StubEngine) -> None:
    """Abort ends every request whose id begins with the given one."""

    def reply(request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
        for request_id, stop in list(engine.active.items()):
            if request_id.startswith(request.request_id):
                stop.set()
        return v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)

    engine.replies["Control/Abort"] = reply


def _ends_all(engine: StubEngine) -> None:
    """Abort of one request fails every running one."""
    engine.after_abort = _internal_error

    def reply(_request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
        for stop in list(engine.active.values()):
            stop.set()
        return v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)

    engine.replies["Control/Abort"] = reply


def _kv_session_not_found(engine: StubEngine) -> None:
    engine.replies["Control/Abort"] = refuse(grpc.StatusCode.NOT_FOUND)


def _forgets(engine: StubEngine) -> None:
    """Finished ids are forgotten although a retention is reported."""

    def reply(request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
        engine.finished.clear()
        return engine.abort(request)

    engine.replies["Control/Abort"] = reply


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """Every abort check passes on a right engine."""
    assert verdict(row, StubEngine()) == "pass"


@pytest.mark.parametrize("row", LEGACY_ROWS)
def test_legacy_engine_passes(row: str) -> None:
    """The rows that run on v0.1.0 engines pass without discovery."""
    engine = StubEngine()
    legacy(engine)
    assert verdict(row, engine) == "pass"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("ABORT-001", _abort_says(v1.ABORT_STATUS_ALREADY_FINISHED)),
        ("ABORT-001", _refused(grpc.StatusCode.NOT_FOUND)),
        ("ABORT-002", _unknown_finished),
        ("ABORT-002", _refused(grpc.StatusCode.INVALID_ARGUMENT)),
        ("ABORT-002", _refused(grpc.StatusCode.NOT_FOUND)),
        ("ABORT-003", _after_real_abort(v1.ABORT_STATUS_ALREADY_FINISHED)),
        ("ABORT-003", _after_real_abort(v1.ABORT_STATUS_UNSPECIFIED)),
        ("ABORT-004", _abort_says(v1.ABORT_STATUS_ABORTED)),
        ("ABORT-004", _refused(grpc.StatusCode.INTERNAL)),
        ("ABORT-004", _forgets),
        ("ABORT-005", _ends(_no_terminal)),
        ("ABORT-005", _ends(_one_terminal)),
        ("ABORT-005", _ends(_two_terminals)),
        ("ABORT-005", _ends(_error_after_terminals)),
        ("ABORT-005", _status_cancelled),
        ("ABORT-006", _ends(_length)),
        ("ABORT-006", _ends(_no_usage)),
        ("ABORT-006", _ends(_internal_error)),
        ("ABORT-007", _ends(_late_tokens)),
        ("ABORT-007", _ends(_tokens_after_error)),
        ("ABORT-008", _second_abort_internal),
        ("ABORT-008", _prefix_match),
        ("ABORT-008", _ends_all),
        ("ABORT-011", lambda engine: engine.scope.core.abort_targets.pop()),
        ("ABORT-011", _kv_session_not_found),
    ],
)
def test_broken_engine_fails(row: str, change: Change) -> None:
    """The check of a row fails on an engine that breaks just that row."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine) == "fail"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("ABORT-003", _refused(grpc.StatusCode.NOT_FOUND)),
        ("ABORT-005", _abort_says(v1.ABORT_STATUS_ABORTED)),
        ("ABORT-005", _hangs),
    ],
)
def test_stream_that_goes_on_fails(row: str, change: Change) -> None:
    """The checks do not wait for the end of a stream that no Abort ended."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine, slow_factor=0.1) == "fail"


@pytest.mark.parametrize("row", ["ABORT-002", *(f"ABORT-{number:03}" for number in (3, 5, 6, 7))])
def test_drawn_cases_pass(row: str) -> None:
    """A right engine passes whatever moment, number of outputs or unseen id is drawn."""
    assert verdict(row, StubEngine(), drawn=12) == "pass"


def test_forgotten_id_passes_without_retention() -> None:
    """ABORT-004 takes NOT_FOUND where no retention is reported."""
    engine = StubEngine()
    engine.scope.core.ClearField("finished_request_retention_ms")
    _forgets(engine)
    assert verdict("ABORT-004", engine) == "pass"


def test_forgotten_id_passes_after_retention() -> None:
    """ABORT-004 waits for the end of a short retention, after which NOT_FOUND is fine."""
    engine = StubEngine()
    engine.scope.core.finished_request_retention_ms = 1
    _forgets(engine)
    assert verdict("ABORT-004", engine) == "pass"


@pytest.mark.parametrize("row", ["ABORT-005", "ABORT-007"])
def test_error_event_passes(row: str) -> None:
    """One EngineError may end all outputs of an aborted stream."""
    engine = StubEngine()
    engine.after_abort = _cancelled_error
    assert verdict(row, engine) == "pass"


def test_error_event_is_tolerated() -> None:
    """ABORT-006 warns about EngineError CANCELLED."""
    engine = StubEngine()
    engine.after_abort = _cancelled_error
    assert verdict("ABORT-006", engine) == "tolerated"


def test_legacy_unknown_id_is_tolerated() -> None:
    """ABORT-002 warns about ALREADY_FINISHED from a v0.1.0 engine."""
    engine = StubEngine()
    legacy(engine)
    _unknown_finished(engine)
    assert verdict("ABORT-002", engine) == "tolerated"


@pytest.mark.parametrize("row", ["ABORT-003", "ABORT-005"])
def test_early_abort_that_overtakes_passes(row: str) -> None:
    """An engine that calls unknown ids finished is not blamed for an Abort before the request."""
    engine = StubEngine()
    _unknown_finished(engine)
    assert verdict(row, engine, after_events=0) == "pass"


@pytest.mark.parametrize("row", ["ABORT-003", "ABORT-005", "ABORT-006", "ABORT-007"])
def test_finished_before_abort_skips(row: str) -> None:
    """A request that ends before its Abort says nothing."""
    engine = StubEngine()
    engine.model.max_output_tokens = 2
    engine.model.generation.max_num_sequences = 1
    assert verdict(row, engine, after_events=3) == "skip"


@pytest.mark.parametrize("row", [f"ABORT-{number:03}" for number in range(3, 9)])
def test_refused_request_skips(row: str) -> None:
    """A request that the engine refuses says nothing about Abort."""
    engine = StubEngine()
    engine.replies["Inference/Generate"] = refuse(grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert verdict(row, engine) == "skip"


@pytest.mark.parametrize("row", ["ABORT-005", "ABORT-006", "ABORT-007"])
def test_failed_abort_skips(row: str) -> None:
    """What follows ABORTED is not judged when Abort does not answer it."""
    engine = StubEngine()
    _refused(grpc.StatusCode.INTERNAL)(engine)
    assert verdict(row, engine) == "skip"


@pytest.mark.parametrize("row", [f"ABORT-{number:03}" for number in range(3, 9)])
def test_engine_that_cannot_generate_skips(row: str) -> None:
    """Rows about running requests say nothing on a prefill engine."""
    engine = StubEngine()
    engine.info.engine_role = v1.ENGINE_ROLE_PREFILL
    assert verdict(row, engine) == "skip"


def test_listed_kv_session_is_not_sent() -> None:
    """ABORT-011 sends no session to an engine that lists the kind."""
    engine = StubEngine()
    engine.scope.core.abort_targets.append(v1.ABORT_TARGET_KIND_KV_SESSION)
    declared = declared_by(engine)
    _kv_session_not_found(engine)
    assert verdict("ABORT-011", engine, declared=declared) == "pass"
