"""The model of request ids: which answers it takes, and which rule it names for the others."""

from __future__ import annotations

import pytest

from conformance.oracle.lifecycle import Breach, End, Lifecycle, Phase


def model(*running: int, remembers: bool = True) -> Lifecycle:
    made = Lifecycle(remembers)
    for slot in running:
        made.begun(slot)
    return made


def rule(breach: Breach | None) -> str:
    return "" if breach is None else breach.requirement.removeprefix("OE-CORE-")


@pytest.mark.parametrize(
    ("answer", "broken"),
    [("ABORTED", ""), ("ALREADY_FINISHED", "ABORT-003"), ("NOT_FOUND", "ABORT-003")],
)
def test_running_requests_are_aborted(answer: str, broken: str) -> None:
    """Only ABORTED is right for a request that runs, and only then does it leave."""
    ids = model(0)
    assert rule(ids.aborted(0, answer)) == broken
    assert (ids.slot(0).phase is Phase.LEAVING) is (not broken)


def test_unused_id_is_not_found() -> None:
    """An id that was never used is unknown; v0.1.0 engines may call it finished."""
    assert rule(model().aborted(3, "NOT_FOUND")) == ""
    assert rule(model().aborted(3, "ALREADY_FINISHED")) == "ABORT-002"
    assert rule(model(remembers=False).aborted(3, "ALREADY_FINISHED")) == ""


def test_finished_id_is_remembered() -> None:
    """Within the retention ALREADY_FINISHED, without one either answer."""
    for remembers, broken in ((True, "ABORT-004"), (False, "")):
        ids = model(0, remembers=remembers)
        ids.ended(0)
        assert rule(ids.aborted(0, "NOT_FOUND")) == broken
        assert rule(ids.aborted(0, "ALREADY_FINISHED")) == ""
        assert rule(ids.aborted(0, "ABORTED")) == "ABORT-004"


def test_second_abort_is_harmless() -> None:
    """Of a request that leaves or has left, any answer but an error."""
    ids = model(0)
    ids.aborted(0, "ABORTED")
    for answer in ("ABORTED", "ALREADY_FINISHED", "NOT_FOUND"):
        assert rule(ids.aborted(0, answer)) == ""
    assert rule(ids.aborted(0, "status INTERNAL")) == "ABORT-008"
    ids.ended(0)
    assert ids.slot(0).end is End.ABORT
    assert rule(ids.aborted(0, "status INTERNAL")) == "ABORT-008"


def test_duplicates_are_refused() -> None:
    """Anything else is GEN-003, and so is a first request that cannot be aborted afterwards."""
    ids = model(0)
    assert rule(ids.duplicate(0, "acceptance")) == "GEN-003"
    ids = model(0)
    assert rule(ids.duplicate(0, "ALREADY_EXISTS")) == ""
    assert rule(ids.aborted(0, "NOT_FOUND")) == "GEN-003"


def test_lost_request_is_blamed_on_what_touched_it() -> None:
    """On an Abort or a cancellation of another, a duplicate, or the id's last owner."""
    ids = model(0, 1)
    ids.aborted(1, "ABORTED")
    assert rule(ids.lost(0, "CANCELLED")) == "ABORT-008"
    ids = model(0, 1)
    ids.cancelled(1)
    assert rule(ids.lost(0, "CANCELLED")) == "CANCEL-002"
    ids = model(0)
    ids.duplicate(0, "ALREADY_EXISTS")
    assert rule(ids.lost(0, "CANCELLED")) == "GEN-003"
    ids = model(0)
    ids.aborted(0, "ABORTED")
    ids.ended(0)
    ids.begun(0)
    assert rule(ids.lost(0, "CANCELLED")) == "ABORT-008"


def test_lost_request_without_one_cause_is_nobodys() -> None:
    """Nothing touched it, or actions that two rules are about."""
    assert model(0).lost(0, "CANCELLED") is None
    ids = model(0, 1, 2)
    ids.aborted(1, "ABORTED")
    ids.cancelled(2)
    assert ids.lost(0, "CANCELLED") is None


def test_abort_of_everything() -> None:
    """ABORTED when something ran; what comes later is not to be hit."""
    ids = model(0, 1)
    assert rule(ids.aborted_all("ALREADY_FINISHED")) == "ABORT-009"
    ids = model(0, 1)
    assert rule(ids.aborted_all("ABORTED")) == ""
    assert rule(ids.aborted_all("ALREADY_FINISHED")) == ""
    ids.ended(0)
    ids.ended(1)
    assert rule(ids.aborted_all("ABORTED")) == "ABORT-009"
    ids.begun(2)
    assert rule(ids.lost(2, "CANCELLED")) == "ABORT-010"


def test_taken_id_is_blamed_on_how_it_became_free() -> None:
    """After a cancellation CANCEL-001, else GEN-004."""
    ids = model(0, 1)
    ids.cancelled(0)
    ids.ended(0)
    ids.ended(1)
    assert rule(ids.taken(0, 5.0)) == "CANCEL-001"
    assert rule(ids.taken(1, 2.0)) == "GEN-004"


def test_load_counts_what_runs() -> None:
    """Too much is blamed on what was released since it was right, too little on the count."""
    ids = model(0, 1)
    ids.cancelled(0)
    assert rule(ids.load(2)) == "CANCEL-001"
    assert rule(ids.load(0)) == "OE-LOAD-009"
    assert ids.load(1) is None
    ids.aborted(1, "ABORTED")
    assert rule(ids.load(1)) == "ABORT-012"


def test_load_after_two_kinds_of_release_is_nobodys() -> None:
    """An Abort and a cancellation leave open which of them released too little."""
    ids = model(0, 1)
    ids.cancelled(0)
    ids.aborted(1, "ABORTED")
    assert ids.load(1) is None


def test_busy_engine_serves() -> None:
    """Load does not change the status."""
    assert model(0).health("SERVING") is None
    assert rule(model(0).health("NOT_SERVING")) == "HEALTH-020"
