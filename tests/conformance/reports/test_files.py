from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from conformance.errors import ConfigError
from conformance.model.registry import default_registry
from conformance.reports import FORMATS, write_report
from conformance.reports.json_report import json_report, schema
from conformance.reports.junit import junit_report
from conformance.reports.markdown import markdown_report
from conformance.runner.report import Report
from conformance.wire.target import Target
from tests.conformance.reports.conftest import SECRET

Run = tuple[Report, Target]


@pytest.fixture
def content(wrong: Run) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json_report(wrong[0]))
    return loaded


def rows(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in content["requirements"]}


def test_json_says_who_was_judged_by_what(wrong: Run, content: dict[str, Any]) -> None:
    """Target, seed, versions and the digest of every judged profile."""
    report = wrong[0]
    assert content["target"]["engine_name"] == "fake"
    assert content["seed"] == 1
    assert content["environment"]["hypothesis"]
    (core,) = content["profiles"]
    assert core["digest"] == default_registry().profile("core").digest
    assert content["verdict"]["exit_code"] == report.verdict.exit_code == 1


def test_json_has_every_requirement(content: dict[str, Any]) -> None:
    """Judged, left out, unchecked: nothing is missing."""
    assert set(rows(content)) == set(default_registry().by_id)
    assert rows(content)["OE-CORE-GEN-016"]["status"] == "fail"
    assert rows(content)["OE-CORE-GEN-002"]["status"] == "excluded"


def test_json_counts_what_each_check_cost(content: dict[str, Any]) -> None:
    """Requests, tokens and seconds of the check are there."""
    row = rows(content)["OE-CORE-STREAM-001"]
    assert row["requests"] >= row["cases_judged"] >= 1
    assert row["tokens"] >= 1
    assert row["seconds"] > 0


def test_json_failure_carries_the_evidence(content: dict[str, Any]) -> None:
    """Expected, actual, replays, the call with its events."""
    failure = rows(content)["OE-CORE-USE-001"]["failure"]
    assert (failure["replays"], failure["reproduced"]) == (2, 2)
    assert failure["call"]["method"] == "openengine.v1.Inference/Generate"
    assert failure["call"]["status"] == "OK"
    assert len(failure["call"]["events"]) == 2


@pytest.mark.parametrize("kind", FORMATS)
def test_no_report_holds_prompts_outputs_or_credentials(wrong: Run, kind: str) -> None:
    """Sizes stand in for texts, and a secret appears nowhere, asked for or not."""
    report, _ = wrong
    failure = report.failure("OE-CORE-USE-001")
    assert failure is not None
    assert failure.transcript is not None
    text = FORMATS[kind](report)
    assert "<1 characters>" in text.replace("&lt;", "<").replace("&gt;", ">")
    assert SECRET not in text
    assert SECRET not in FORMATS[kind](report, include_payloads=True)


def test_payloads_appear_when_asked_for(wrong: Run) -> None:
    """Then prompts and tokens are whole."""
    failure = rows(json.loads(json_report(wrong[0], include_payloads=True)))["OE-CORE-USE-001"]
    call = failure["failure"]["call"]
    assert len(call["request"]["prompt"]) == 1
    assert isinstance(call["events"][0]["message"]["token"]["tokens"][0]["token_id"], int)


def test_the_schema_is_closed(content: dict[str, Any]) -> None:
    """An unknown key, a wrong status or a missing field is refused."""
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(content)
    for spoil in (
        lambda c: c.update(extra=1),
        lambda c: c["requirements"][0].update(status="maybe"),
        lambda c: c["verdict"].pop("claim"),
        lambda c: c["profiles"][0].update(digest="short"),
    ):
        wrong = copy.deepcopy(content)
        spoil(wrong)
        assert not validator.is_valid(wrong)


def test_junit_counts_and_true_statuses(wrong: Run) -> None:
    """Failures, skips and totals add up; properties keep the status and the clause."""
    (suite,) = ElementTree.fromstring(junit_report(wrong[0]))  # noqa: S314 - our own text
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert suite.get("tests") == str(len(default_registry().requirements("core")))
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == "2"
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    properties = {
        item.get("name"): item.get("value")
        for item in cases["OE-CORE-GEN-016"].findall("properties/property")
    }
    assert properties["status"] == "fail"
    assert properties["clause"] == default_registry().requirement("OE-CORE-GEN-016").text
    assert cases["OE-CORE-GEN-001"].find("failure") is None


def test_markdown_shows_the_claim_and_what_broke(wrong: Run) -> None:
    """One table of profiles and one of broken rows, valid as GitHub renders it."""
    text = markdown_report(wrong[0])
    assert "**not conformant to core 1.0 (2 failed)**" in text
    assert "| fail | OE-CORE-GEN-016 |" in text
    for table in text.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_every_report_lists_what_is_unchecked(wrong: Run, content: dict[str, Any]) -> None:
    """A row that applies and has no check is named, and is neither a pass nor a skip."""
    assert wrong[0].unchecked == ("OE-CORE-CAP-016",)
    assert rows(content)["OE-CORE-CAP-016"]["status"] == "unchecked"
    assert content["profiles"][0]["unchecked"] == ["OE-CORE-CAP-016"]
    assert "Unchecked (no check exists yet): OE-CORE-CAP-016" in markdown_report(wrong[0])
    assert junit_report(wrong[0]).count('name="status" value="unchecked"') == 1


def test_a_file_that_cannot_be_written_is_one_clear_error(wrong: Run, tmp_path: Path) -> None:
    """It names the file and the format."""
    with pytest.raises(ConfigError, match=r"json report.*"):
        write_report(wrong[0], "json", tmp_path)
