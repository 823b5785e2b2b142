"""The worker checks on the reference transport, behind two servers of different make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.model.status import Status
from conformance.runner.http_session import HttpOptions
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from tests.http.worker.servers import (
    forwarder_on,
    on_granian,
    on_uvicorn,
    options_of,
    worker_on,
)

# Needs a forwarder in front, which has tests of its own.
FORWARDING = "OE-WORK-017"


@pytest.mark.parametrize("serve", [on_uvicorn, on_granian], ids=["uvicorn", "granian"])
def test_every_rule_holds(serve):
    """Every check passes, whichever server carries the transport."""
    with worker_on(serve) as options:
        report = run_http(options)
    other = {
        each.requirement: (each.status, each.detail)
        for each in report.judgements
        if each.requirement.startswith("OE-WORK-") and each.status is not Status.PASS
    }
    assert list(other) == [FORWARDING], other
    assert other[FORWARDING][0] is Status.HOOK_MISSING


def test_forwarding_changes_nothing():
    """Seen beside its worker, and judged as a worker itself: the stage is forwarded, too."""
    ids = ("OE-WORK-005", "OE-WORK-006", "OE-WORK-007", "OE-WORK-010", "OE-WORK-015")
    with (
        worker_on(on_uvicorn) as worker,
        forwarder_on(on_granian, worker.target.address) as front,
    ):
        beside = options_of(worker.target.address, forwarder=front)
        seen = passed(replace(beside, selection=Selection(ids=(FORWARDING,))))
        itself = passed(replace(options_of(front), selection=Selection(ids=ids)))
    assert seen == {FORWARDING}
    assert itself == set(ids)


def passed(options: HttpOptions) -> set[str]:
    """The requirements that hold."""
    report = run_http(options)
    return {each.requirement for each in report.judgements if each.status is Status.PASS}
