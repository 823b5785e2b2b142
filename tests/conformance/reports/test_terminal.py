from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from conformance.model.registry import default_registry
from conformance.reports.evidence import evidence, timeline
from conformance.reports.redact import redacted
from conformance.reports.terminal import Progress, print_report
from conformance.runner.events import RunStarted
from conformance.runner.report import Report
from conformance.wire.target import Target, parse_address
from conformance.wire.transcript import Event
from tests.conformance.fake_engine import Behaviour, FakeEngine
from tests.conformance.reports.conftest import SECRET

Run = tuple[Report, Target]


def lines_of(wrong: Run, requirement: str) -> dict[str, str]:
    report, target = wrong
    failure = report.failure(requirement)
    assert failure is not None
    lines = list(evidence(failure, default_registry(), target, {}))
    return dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))


def test_evidence_has_all_that_reproduces_a_failure(wrong: Run) -> None:
    """Clause, expected, actual, timeline, minimal request, replay and curl lines."""
    lines = lines_of(wrong, "OE-CORE-GEN-016")
    assert {"expected", "actual", "replayed", "call", "request", "replay", "curl"} <= set(lines)
    assert '"prompt": "a"' in lines["request"]
    assert lines["replay"].startswith("oe-conform replay OE-CORE-GEN-016-")


def test_a_credential_is_a_variable_in_the_curl_line(wrong: Run) -> None:
    """Its name is shown, its value never."""
    line = lines_of(wrong, "OE-CORE-GEN-016")["curl"]
    assert "MY_TOKEN" in line
    assert SECRET not in line


def test_the_curl_line_works(wrong: Run) -> None:
    """Against the same wrong engine it gets the same wrong answer: OK instead of a refusal."""
    curl = shutil.which("curl")
    if (
        curl is None
        or b"HTTP2" not in subprocess.run([curl, "-V"], capture_output=True, check=True).stdout
    ):
        pytest.skip("no curl with HTTP/2")
    report, _ = wrong
    failure = report.failure("OE-CORE-GEN-016")
    assert failure is not None
    for breaks, status in ((frozenset({"GEN-016"}), "0"), (frozenset[str](), "3")):
        with FakeEngine(Behaviour(breaks=breaks)) as engine:
            target = Target(parse_address(engine.address))
            shown = list(evidence(failure, default_registry(), target, {}))
            (line,) = [text.split(maxsplit=1)[1] for text in shown if text.startswith("  curl")]
            done = subprocess.run(
                ["sh", "-c", line], capture_output=True, text=True, timeout=20, check=True
            )
        assert f"grpc-status: {status}" in done.stdout


def test_a_long_stream_is_shown_by_its_ends(wrong: Run) -> None:
    """First and last events, the offending one, and how many are left out between."""
    failure = wrong[0].failure("OE-CORE-USE-001")
    assert failure is not None
    assert failure.transcript is not None
    event = failure.transcript.events[0]
    events = tuple(Event(float(number), event.message) for number in range(40))
    lines = list(timeline(replace(failure.transcript, events=events), 20, payloads=False))
    assert len(lines) == 6 + 1 + 1 + 1 + 6 + 1
    assert "14 events left out" in lines[6]
    assert ">  20" in lines[7]
    assert "13 events left out" in lines[8]


def test_the_report_ends_with_the_claim(wrong: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, unchecked rows as ranges, cost and seed; then one sentence."""
    report, target = wrong
    print_report(report, target)
    out = capsys.readouterr().out.strip().splitlines()
    assert out[-1] == "not conformant to core 1.0 (2 failed)"
    assert f"seed {report.seed}, budget few" in out[-2]
    assert any(line.startswith("fail     OE-CORE-GEN-016") for line in out)


@pytest.mark.parametrize("colour", [True, False])
def test_progress_off_a_terminal_is_one_plain_line_per_check(
    wrong: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, colour: bool
) -> None:
    """No escape codes, no carriage returns; NO_COLOR changes nothing there."""
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    report = wrong[0]
    with Progress() as progress:
        progress(RunStarted(report.declared, report.plan, report.seed))
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\r" not in err
    assert err.splitlines()[0].startswith("fake 1: profile-aware, role aggregated")
    assert f"will run {len(report.plan.to_run)} checks" in err


def test_redaction_keeps_structure_and_numbers_without_content() -> None:
    """Texts and ids become sizes; presence, counts and flags stay."""
    message = {
        "request_id": "a",
        "token": {
            "output_index": 0,
            "text": "four",
            "tokens": [{"token_id": 7, "token": "x", "logprob": -1.5}],
        },
        "token_ids": {"ids": [1, 2, 3]},
        "usage": {"prompt_tokens": 3},
    }
    assert redacted(message) == {
        "request_id": "a",
        "token": {
            "output_index": 0,
            "text": "<4 characters>",
            "tokens": [{"token_id": "<number>", "token": "<1 characters>", "logprob": -1.5}],
        },
        "token_ids": {"ids": "<3 items>"},
        "usage": {"prompt_tokens": 3},
    }
