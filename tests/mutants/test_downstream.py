"""An engine that passes trace context on as it should is not called wrong."""

from __future__ import annotations

from conformance.model.status import Status
from conformance.mutants.downstream import RIGHT
from conformance.mutants.matrix import run_plain, try_mutant
from conformance.wire.target import Target


def test_right_propagation_stays_green(engine: Target) -> None:
    """The two rows that only such an engine shows pass, and so do those around them."""
    trial = try_mutant(engine, RIGHT)
    assert (trial.own_status, trial.own_detail) == (Status.PASS, "")
    ids = ("OE-CORE-TRACE-*", "OE-CORE-GEN-027", "OE-CORE-CAP-0*")
    assert run_plain(engine, ids=ids, variant=RIGHT).broken == {}
