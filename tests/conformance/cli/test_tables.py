from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.checks import all_checks
from conformance.model.registry import default_registry
from tests.conformance.cli.conftest import Run


def test_list_has_a_line_for_each_requirement(oe_conform: Run) -> None:
    """Id, level, check or `unchecked`, and the first words."""
    lines = oe_conform("list", "--profile", "core").stdout.splitlines()
    assert len(lines) == len(default_registry().requirements("core"))
    by_id = {line.split()[0]: line.split()[1:3] for line in lines}
    assert by_id["OE-CORE-GEN-001"] == ["MUST", all_checks()["OE-CORE-GEN-001"].name]
    assert by_id["OE-PROF-002"] == ["MUST", "model.profile_verdict"]


def test_requirements_as_json_lines(oe_conform: Run) -> None:
    """One object for each row, and one line of counts at the end."""
    *rows, counts = oe_conform("requirements", "--json").stdout.splitlines()
    entries = {entry["id"]: entry for entry in map(json.loads, rows)}
    assert set(entries) == set(default_registry().by_id)
    assert set(entries["OE-CORE-GEN-001"]) == {"id", "level", "profile", "check", "mutants"}
    assert counts.startswith(f"{len(entries)} requirements, {len(all_checks())} with a check")


def test_explain_says_how_to_fix(oe_conform: Run) -> None:
    """Text, source, check, mutant and advice."""
    out = oe_conform("explain", "OE-CORE-GEN-001").stdout
    for word in ("MUST", "request_id", "Source:", "Check:", "Mutant:", "How to fix"):
        assert word in out


def test_explain_an_unchecked_requirement(oe_conform: Run) -> None:
    """It says that no check exists."""
    assert "reported as unchecked" in oe_conform("explain", "OE-SESS-001").stdout


def test_explain_a_rule_for_reports(oe_conform: Run) -> None:
    """It says what keeps the rule, since no check does."""
    assert "model.profile_verdict" in oe_conform("explain", "OE-PROF-002").stdout


RIGHT = {
    "method": "openengine.v1.Inference/Generate",
    "request": {"request_id": "r", "model": "m", "prompt": "a", "stopping": {"max_tokens": 1}},
    "events": [
        {"message": {"request_id": "r", "token": {"output_index": 0, "tokens": [{"token_id": 1}]}}},
        {
            "message": {
                "request_id": "r",
                "finished": {"output_index": 0, "reason": "FINISH_REASON_LENGTH"},
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        },
    ],
    "status": "OK",
}


def recording(path: Path, *calls: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(call) + "\n" for call in calls))
    return str(path)


def test_judge_passes_recorded_traffic(oe_conform: Run, tmp_path: Path) -> None:
    """Laws are held against a file, without any target."""
    done = oe_conform("judge", recording(tmp_path / "calls.jsonl", RIGHT))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_judge_names_line_event_and_rule(oe_conform: Run, tmp_path: Path) -> None:
    """A wrong id in the second call's first message."""
    wrong = json.loads(json.dumps(RIGHT))
    wrong["events"][0]["message"]["request_id"] = "other"
    done = oe_conform("judge", recording(tmp_path / "calls.jsonl", RIGHT, wrong))
    assert done.returncode == 1
    assert "FAIL OE-CORE-STREAM-001 line 2, event 0" in done.stdout


@pytest.mark.parametrize("content", ["", '{"method": "openengine.v1.Control/Health"}\n'])
def test_judging_nothing_is_not_green(oe_conform: Run, tmp_path: Path, content: str) -> None:
    """An empty or useless file exits with 2."""
    path = tmp_path / "calls.jsonl"
    path.write_text(content)
    assert oe_conform("judge", str(path)).returncode == 2
