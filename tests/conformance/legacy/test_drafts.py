"""Engines of the drafts before the release: another numbering, and one service instead of two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.model.status import SkipReason, Status
from conformance.wire.connection import Connection
from conformance.wire.curl import curl_line
from conformance.wire.declared import TargetClass
from conformance.wire.detect import detect
from conformance.wire.dialect import DRAFT, RELEASED, shown_in, value_name
from conformance.wire.target import Target, parse_address
from oe_wire import v1
from tests.conformance.legacy.running import CLAIM, judged, lines
from tests.legacy_engine import behaviour
from tests.legacy_engine.server import LegacyEngine

STOPPED = replace(behaviour.DRAFT, ready=False)
HEALTH = v1.HealthState.DESCRIPTOR
ERROR = v1.ErrorCode.DESCRIPTOR


def test_no_verdict_hangs_on_the_numbering() -> None:
    """A draft engine is compatible, and the claim names the dialect."""
    report = judged(behaviour.DRAFT)
    assert lines(report) == {}
    assert report.verdict.text.startswith(f"{CLAIM} {DRAFT}")
    assert report.verdict.exit_code == 0


@pytest.mark.parametrize(("dialect", "status"), [("", "pass"), (RELEASED, "fail")])
def test_a_value_is_known_in_its_dialect(dialect: str, status: str) -> None:
    """NOT_READY is 5 in the draft, a number that the release does not define."""
    report = judged(STOPPED, ids=("OE-CORE-ENUM-002",), dialect=dialect)
    (found,) = [j for j in report.judgements if j.requirement == "OE-CORE-ENUM-002"]
    assert found.status == status


def test_one_service_is_recognised() -> None:
    """The engine is asked under its own paths, and says what it serves."""
    with LegacyEngine(behaviour.SINGLE) as engine:
        target = Target(parse_address(engine.address))
        with Connection(target) as connection:
            declared = detect(connection, timeout=20.0, model=None)
    assert declared.target_class is TargetClass.LEGACY_SINGLE
    assert (declared.dialect, declared.model_name, declared.role) == (DRAFT, "toy", "aggregated")
    assert declared.generates
    assert declared.server_info is not None
    assert declared.server_info.schema_release == "d0f29fe"
    assert not declared.server_info.HasField("capacity")


def test_one_service_is_judged_without_the_metadata_rows() -> None:
    """It holds, under its own claim; rows about metadata and `extra` do not bind it."""
    report = judged(behaviour.SINGLE)
    assert lines(report) == {}
    assert report.verdict.text.startswith(f"{CLAIM} {DRAFT}, single service")
    by_id = {j.requirement: j for j in report.judgements}
    for requirement in ("OE-CORE-META-001", "OE-CORE-META-009", "OE-CORE-GEN-029"):
        assert by_id[requirement].status is Status.NOT_APPLICABLE
        assert by_id[requirement].reason is SkipReason.LEGACY
    assert by_id["OE-CORE-ABORT-003"].status is Status.PASS


def test_a_failure_of_one_service_is_reproduced_there() -> None:
    """The line for a shell goes to the path that was called."""
    target = Target(parse_address("localhost:1"), single_service=True)
    line = curl_line(target, "openengine.v1.Control/GetServerInfo", b"", ())
    assert "/openengine.v1.OpenEngine/GetEngineInfo" in line
    line = curl_line(replace(target, single_service=False), "openengine.v1.Control/Abort", b"", ())
    assert "/openengine.v1.Control/Abort" in line


def test_deviations_are_found_under_one_service_too() -> None:
    """A draft engine that serves too small a minimum is told so."""
    wrong = replace(behaviour.SINGLE, min_over_max_accepted=True)
    report = judged(wrong, ids=("OE-CORE-GEN-01?",))
    assert lines(report) == {"OE-CORE-GEN-014": "fail"}
    assert report.verdict.text.startswith(f"not {CLAIM} {DRAFT}, single service")


def test_names_in_a_dialect() -> None:
    """Three spots differ; everything else has its released name."""
    assert value_name(HEALTH, 4, DRAFT) == "HEALTH_STATE_DRAINING"
    assert value_name(HEALTH, 5, DRAFT) == "HEALTH_STATE_NOT_READY"
    assert value_name(HEALTH, 5, RELEASED) is None
    assert value_name(HEALTH, 2, DRAFT) == value_name(HEALTH, 2, RELEASED) == "HEALTH_STATE_READY"
    assert value_name(ERROR, 11, DRAFT) == "ERROR_CODE_DRAINING"
    assert value_name(ERROR, 12, DRAFT) == value_name(ERROR, 11, RELEASED) == "ERROR_CODE_INTERNAL"


def test_reports_use_the_names_of_the_dialect() -> None:
    """What protobuf JSON prints by the released numbering is put right."""
    content = {
        "state": "HEALTH_STATE_NOT_READY",
        "checks": [{"name": "grpc", "state": 5}],
        "error": {"code": 12},
        "kv_connector": {"schema_version": 1, "enabled": True},
    }
    assert shown_in(RELEASED, content) == content
    assert shown_in(DRAFT, content) == {
        "state": "HEALTH_STATE_DRAINING",
        "checks": [{"name": "grpc", "state": "HEALTH_STATE_NOT_READY"}],
        "error": {"code": "ERROR_CODE_INTERNAL"},
        "kv_connector": {"supports_drain": True, "enabled": True},
    }
