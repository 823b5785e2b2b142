"""The worker checks on the reference transport, behind two servers of different make."""

from __future__ import annotations

import pytest

from conformance.model.status import Status
from conformance.runner.run import run_http
from tests.http.worker.servers import on_granian, on_uvicorn, worker_on

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
