"""`oe-engine worker`, as a process, keeps the whole contract of workers."""

from __future__ import annotations

from pathlib import Path

from conformance.model.status import Status
from conformance.runner.run import run_http
from tests.http.worker.servers import options_of
from tests.reference_engine.worker.test_process import worker

# What `options_of` says of the workers of these tests.
TERMS = ("--body-limit", "4096", "--budget", "20", "--budget-header", "x-budget-ms")


def test_every_rule_holds(tmp_path: Path) -> None:
    """With a real decision behind it, and seen beside a forwarder that is such a process too."""
    (tmp_path / "back").mkdir()
    (tmp_path / "front").mkdir()
    testing = ("--testing", *TERMS)
    with (
        worker(tmp_path / "back", *testing, "--queue", "3") as (origin, _),
        worker(tmp_path / "front", *testing, "--forward", origin) as (front, _),
    ):
        report = run_http(options_of(origin, forwarder=front))
    rows = [each for each in report.judgements if each.requirement.startswith("OE-WORK-")]
    assert len(rows) == 21
    assert {each.requirement: each.detail for each in rows if each.status is not Status.PASS} == {}
