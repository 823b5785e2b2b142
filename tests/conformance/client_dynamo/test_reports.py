"""Client needs in reports: a block of their own that no verdict and no exit code rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.model.client import client_set
from conformance.reports import FORMATS
from conformance.runner.clients import Result, all_met, judge_clients
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options, open_session
from conformance.wire.target import Target, parse_address
from tests.conformance.cli.conftest import Run
from tests.legacy_engine.behaviour import CLEAN, TRTLLM
from tests.legacy_engine.server import LegacyEngine

FEW = ("OE-CORE-DISC-00[56]",)
TEXT = "client needs dynamo 1.0: 24 met, 3 not met, 5 not applicable, 2 not observed"
CLAIM = "compatibility with v0.1.0, revision 1, dialect v0.1.0"  # of a part of the rows


@pytest.fixture(scope="module")
def engine() -> Iterator[LegacyEngine]:
    """An engine that misses three needs."""
    with LegacyEngine(TRTLLM) as running:
        yield running


def report_on(engine: LegacyEngine, *clients: str) -> Report:
    target = Target(parse_address(engine.address))
    return run(
        Options(
            target,
            seed=1,
            selection=Selection(ids=FEW),
            clients=tuple(map(client_set, clients)),
        )
    )


@pytest.fixture(scope="module")
def report(engine: LegacyEngine) -> Report:
    return report_on(engine, "dynamo")


def test_needs_change_nothing_else(engine: LegacyEngine, report: Report) -> None:
    """Verdict, judgements and counts are those of a run without the client."""
    plain = report_on(engine)
    assert plain.clients == ()
    assert plain.verdict == report.verdict
    assert [j.requirement for j in plain.judgements] == [j.requirement for j in report.judgements]
    assert not any("CLIENT" in j.requirement for j in report.judgements)
    assert report.failures == ()
    (client,) = report.clients
    assert client.text == TEXT
    assert not all_met(report.clients)
    assert all_met(plain.clients)


def test_json(report: Report) -> None:
    """Each need with its result and the consequence; requirements do not hold them."""
    content = json.loads(FORMATS["json"](report))
    (client,) = content["clients"]
    assert (client["name"], client["version"], client["text"]) == ("dynamo", "1.0", TEXT)
    needs = {need["id"]: need for need in client["needs"]}
    role = needs["OE-CLIENT-DYNAMO-004"]
    assert (role["result"], role["otherwise"]) == ("not_met", "refused")
    assert role["expected"] == "AGGREGATED or PREFILL or DECODE"
    assert not any("CLIENT" in row["id"] for row in content["requirements"])


def test_junit(report: Report) -> None:
    """A suite of its own without failures: an advisory set turns no build red."""
    root = ElementTree.fromstring(FORMATS["junit"](report))  # noqa: S314 - written just now
    (suite,) = [s for s in root if s.get("name") == "client needs: dynamo 1.0"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("34", "0", "7")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    out = cases["OE-CLIENT-DYNAMO-012"].find("system-out")
    assert out is not None
    assert out.text == "not met: expected generation.max_num_sequences; got absent"


def test_markdown(report: Report) -> None:
    """A section of its own names what is missing and what the client does then."""
    text = FORMATS["markdown"](report)
    section = text[text.index("### Client needs: dynamo 1.0") :]
    assert "Advisory: no verdict rests on them." in section
    assert "| OE-CLIENT-DYNAMO-033" in section
    assert "| refused |" in section


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_the_claim(report: Report, kind: str) -> None:
    """A v0.1.0 engine is called that everywhere, and never conformant to a profile."""
    text = FORMATS[kind](report)
    assert CLAIM in text
    for named in ("conformant to core", 'name="core 1.0"', "| core 1.0"):
        assert named not in text


def test_what_is_left_when_time_is_up_is_not_observed(engine: LegacyEngine) -> None:
    """A need that was not judged is neither met nor missing."""
    session = open_session(Options(Target(parse_address(engine.address)), seed=1))
    (stopped,) = judge_clients(session, [client_set("dynamo")], limit=0.0)
    assert stopped.counts == {Result.NOT_OBSERVED: 34}
    assert {need.detail for need in stopped.needs} == {"the run ended before it was judged"}
    assert all_met([stopped])


def test_the_command_line(oe_conform: Run, engine: LegacyEngine, tmp_path: Path) -> None:
    """Off by default; advisory when asked for; counted only on demand."""
    options = ("run", "--target", engine.address, "--budget", "quick", "--id", FEW[0])
    plain = oe_conform(*options)
    assert plain.returncode == 0, plain.stderr
    assert "client needs" not in plain.stdout
    asked = oe_conform(*options, "--client", "dynamo")
    assert asked.returncode == 0
    assert f"{TEXT} (advisory)" in asked.stdout
    assert "not met  OE-CLIENT-DYNAMO-004 (refused) expected AGGREGATED" in asked.stdout
    assert CLAIM in asked.stdout.splitlines()[-1]
    assert "core 1.0" not in asked.stdout + asked.stderr
    counted = oe_conform(*options, "--client", "dynamo", "--require-client")
    assert counted.returncode == 1


def test_a_client_whose_needs_are_met(oe_conform: Run) -> None:
    """The demand is fulfilled by an engine that misses nothing."""
    with LegacyEngine(CLEAN) as right:
        options = ("run", "--target", right.address, "--budget", "quick", "--id", FEW[0])
        done = oe_conform(*options, "--client", "dynamo", "--require-client")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--client", "dynamoo"), "dynamo"), (("--require-client",), "--client NAME")],
)
def test_wrong_options(oe_conform: Run, options: tuple[str, ...], said: str) -> None:
    """They are refused before an engine is looked for."""
    done = oe_conform("run", "--target", "127.0.0.1:1", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_results_have_one_word_each() -> None:
    """The words that reports use."""
    assert [result.value for result in Result] == [
        "met",
        "not_met",
        "not_applicable",
        "not_observed",
    ]
