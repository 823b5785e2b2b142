"""Laws about failures and what they say."""

from __future__ import annotations

from dataclasses import replace

import grpc
import pytest

from conformance.laws import Finding, judge, laws_of
from conformance.laws.errors import contradiction
from conformance.laws.law import GENERATE
from oe_wire import v1
from tests.conformance.laws.build import (
    DECLARED,
    ending,
    failed,
    finished,
    found,
    rejected,
    request,
    rule,
    stream,
    tokens,
)

Code = grpc.StatusCode
ABORT_RPC = "openengine.v1.Control/Abort"
HEALTH_RPC = "grpc.health.v1.Health/Check"


def test_a_failure_has_one_form() -> None:
    """An EngineError beside a status of the engine is found; a lost connection is not."""
    both = stream(request(), tokens(0, [1]), failed(), end=ending(Code.INTERNAL))
    assert found("ERR-001", both) == 1
    lost = stream(request(), failed(), end=ending(Code.UNAVAILABLE, local=True))
    assert rule("ERR-001", lost) is True
    assert rule("ERR-001", stream(request(), failed())) is True
    assert rule("ERR-001", rejected()) is True
    assert rule("ERR-001", stream(request(), finished(0))) is None


def test_an_error_has_code_and_words() -> None:
    """UNSPECIFIED and an empty message are found; a newer code is a code."""
    assert rule("ERR-002", stream(request(), failed())) is True
    assert found("ERR-002", stream(request(), failed(v1.ERROR_CODE_UNSPECIFIED))) == 0
    assert found("ERR-002", stream(request(), tokens(0, [1]), failed(message=""))) == 1
    newer = failed()
    newer.error.MergeFromString(b"\x08\x63")
    assert rule("ERR-002", stream(request(), newer)) is True
    assert rule("ERR-002", stream(request(), finished(0))) is None


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (Code.INVALID_ARGUMENT, "ERROR_CODE_INVALID_ARGUMENT"),
        (Code.INVALID_ARGUMENT, "UNSUPPORTED_FEATURE"),
        (Code.NOT_FOUND, "MODEL_NOT_FOUND"),
        (Code.ALREADY_EXISTS, "DUPLICATE_REQUEST"),
        (Code.UNAVAILABLE, "OVERLOADED"),
    ],
)
def test_a_fitting_code_is_kept(status: grpc.StatusCode, name: str) -> None:
    """Names of the table, with and without the enum's prefix."""
    assert rule("ERR-004", rejected(status, code=name)) is True


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (Code.INVALID_ARGUMENT, "INTERNAL"),
        (Code.NOT_FOUND, "DUPLICATE_REQUEST"),
        (Code.INVALID_ARGUMENT, "BAD"),
        (Code.UNIMPLEMENTED, "3"),
        (Code.INVALID_ARGUMENT, "UNSPECIFIED"),
    ],
)
def test_a_contradictory_code_is_found(status: grpc.StatusCode, name: str) -> None:
    """A name of another row, and values that are no name."""
    call = rejected(status, code=name)
    assert found("ERR-004", call) is None
    assert isinstance(contradiction(call), Finding)


def test_an_absent_code_is_found_but_contradicts_nothing() -> None:
    """Absence is the lesser breach, on Control too."""
    assert found("ERR-004", rejected()) is None
    assert contradiction(rejected()) is None
    assert (
        found("ERR-004", rejected(Code.NOT_FOUND, sent=v1.AbortRequest(), method=ABORT_RPC)) is None
    )


def test_where_no_code_is_due_none_is_missed() -> None:
    """Statuses without a row, local ones, refusals of the transport, and other services."""
    assert rule("ERR-004", rejected(Code.UNIMPLEMENTED)) is None
    assert rule("ERR-004", rejected(Code.UNAVAILABLE)) is None
    assert rule("ERR-004", rejected(local=True)) is None
    assert rule("ERR-004", rejected(Code.NOT_FOUND, method=HEALTH_RPC)) is None
    assert rule("ERR-004", replace(rejected(), request=None)) is None
    huge = replace(rejected(Code.RESOURCE_EXHAUSTED), request_bytes=bytes(2**22 + 1))
    assert rule("ERR-004", huge) is None
    assert rule("ERR-004", stream(request(), finished(0))) is None
    capabilities = v1.Capabilities(core=v1.CoreCapabilities(max_request_bytes=4))
    small = replace(DECLARED, capabilities=capabilities)
    assert rule("ERR-004", rejected(Code.RESOURCE_EXHAUSTED), small) is None


def test_hopeless_failures_are_not_retryable() -> None:
    """As an event and as trailers of a rejection."""
    hopeless = v1.ERROR_CODE_UNSUPPORTED_FEATURE
    assert found("ERR-005", stream(request(), failed(hopeless, retryable=True))) == 0
    assert rule("ERR-005", stream(request(), failed(hopeless))) is True
    overloaded = failed(v1.ERROR_CODE_OVERLOADED, retryable=True)
    assert rule("ERR-005", stream(request(), overloaded)) is None
    assert found("ERR-005", rejected(code="INVALID_ARGUMENT", retryable="true")) is None
    assert rule("ERR-005", rejected(code="INVALID_ARGUMENT", retryable="false")) is True
    assert rule("ERR-005", rejected(code="OVERLOADED", retryable="true")) is None
    assert rule("ERR-005", rejected(code="INVALID_ARGUMENT")) is None


@pytest.mark.parametrize("status", [Code.INTERNAL, Code.UNKNOWN])
def test_input_causes_no_internal_status(status: grpc.StatusCode) -> None:
    """INTERNAL and UNKNOWN rejections are found on every RPC of ours."""
    assert found("ERR-006", rejected(status)) is None
    assert found("ERR-006", rejected(status, sent=v1.AbortRequest(), method=ABORT_RPC)) is None
    assert rule("ERR-006", rejected(status, method=HEALTH_RPC)) is None
    assert rule("ERR-006", rejected(status, local=True)) is None
    assert rule("ERR-006", replace(rejected(status), request=None)) is None
    late = stream(request(), tokens(0, [1]), end=ending(status))
    assert rule("ERR-006", late) is None
    assert rule("ERR-006", rejected()) is True


MARKER = "sunflower-marker-4711"


def test_prompts_do_not_come_back() -> None:
    """In a status message, an EngineError and a finish message."""
    asked = request(prompt=MARKER)
    said = f"cannot read '{MARKER}'"
    assert found("ERR-007", rejected(details=said, sent=asked)) is None
    assert found("ERR-007", stream(asked, failed(message=said))) == 0
    assert found("ERR-007", stream(asked, finished(0, message=said))) == 0
    assert rule("ERR-007", rejected(details="cannot read the prompt", sent=asked)) is True
    unary = rejected(details=said, sent=asked, method=ABORT_RPC)
    assert found("ERR-007", unary) is None


def test_metadata_values_do_not_come_back() -> None:
    """Values of openengine keys and credentials, the credential alone too; other keys may."""
    for key, value, said in (
        ("openengine-routing-key", "tenant-blue-7", "bad key tenant-blue-7"),
        ("Authorization", "Bearer abcd1234efgh", "unknown token abcd1234efgh"),
    ):
        call = rejected(details=said, metadata=((key, value),))
        assert found("ERR-007", call) is None
        assert rule("ERR-007", replace(call, metadata=(("x-other", value),))) is None


def test_what_may_appear_by_chance_is_not_judged() -> None:
    """Short, uniform and numeric texts, and texts that are part of the request's names."""
    for text in ("hello", "------------", "123456789012"):
        call = rejected(details=f"no {text}", sent=request(prompt=text))
        assert rule("ERR-007", call) is None
    named = request(prompt=MARKER)
    named.request_id = f"id-{MARKER}"
    assert rule("ERR-007", rejected(details=f"{MARKER} exists", sent=named)) is None
    limit = (("openengine-target-dp-rank", "4294967296"),)
    assert rule("ERR-007", rejected(details="below 4294967296", metadata=limit)) is None
    assert rule("ERR-007", rejected(details="", sent=request(prompt=MARKER))) is None
    assert (
        rule("ERR-007", rejected(details=MARKER, sent=request(prompt=MARKER), local=True)) is None
    )


def test_judge_runs_what_applies() -> None:
    """Generate is judged by every law, another RPC by those for every RPC."""
    everywhere = {f"OE-CORE-{row}" for row in ("ERR-004", "ERR-006", "ERR-007", "ENUM-002")}
    assert set(judge(rejected(), DECLARED)) == laws_of(GENERATE)
    other = rejected(sent=v1.AbortRequest(), method=ABORT_RPC)
    assert set(judge(other, DECLARED)) == everywhere
    assert not any(judge(rejected(method=HEALTH_RPC), DECLARED).values())
