"""A real llama.cpp, serving the scripted model, is exactly as its profile says."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cli.main import cli
from conformance.model.status import Status
from conformance.runner.report import Report
from conformance.runtimes.registry import runtime_profile, runtime_profiles
from tests.http.real.servers import RealServer, free_port, needs, started
from tools.scripted_model import CONTEXT, GGUF_NAME

needs("xllamacpp", "xllamacpp==2026.8.10229")

SCRIPT = str(Path(__file__).with_name("llama_cpp_server.py"))
SLOTS = 2
CONDITIONS = ("parallel-2", "metrics-flag", "slots-flag")


@pytest.fixture(name="server", scope="module")
def fixture_server(
    scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    """The build is the last number of the package's version."""
    build = f"b{importlib.metadata.version('xllamacpp').rpartition('.')[2]}"
    if f"llama-cpp@{build}" not in runtime_profiles():
        pytest.skip(f"no profile of llama.cpp {build}: pip install xllamacpp==2026.8.10229")
    port, log = free_port(), tmp_path_factory.mktemp("llama-cpp") / "log"
    with started([SCRIPT, str(scripted / GGUF_NAME), str(port), str(SLOTS)], port, log) as origin:
        yield RealServer(origin, f"runtimes/llama-cpp@{build}", CONDITIONS, CONTEXT)


@pytest.fixture(name="report", scope="module")
def fixture_report(server: RealServer) -> Report:
    return server.judged()


def test_its_deviations_are_those_of_the_profile(report: Report, server: RealServer) -> None:
    """Every known one is seen as described, and none besides."""
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = runtime_profile(server.profile).deviations
    assert set(report.comparison.known) == {each.requirement for each in deviations}


def test_everything_was_judged(report: Report) -> None:
    """No row of its contracts lacks a check, breaks the suite or says nothing."""
    assert report.unchecked == ()
    judged = [
        each for each in report.judgements if each.status in {Status.PASS, Status.FAIL, Status.WARN}
    ]
    assert len(judged) > 50
    assert [each.requirement for each in report.judgements if each.status is Status.ERROR] == []


def test_the_command_line_says_the_same(
    server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`oe-conform run` on a part of it exits 0, because what fails is known."""
    monkeypatch.chdir(tmp_path)
    command = ["run", "--target", server.origin, "--profile", server.profile, "--scripted"]
    some = [*command, "--id", "OE-HTTP-CHAT-00?", "--id", "OE-HTTP-CHAT-031"]
    assert cli.main(args=some, standalone_mode=False) in {0, None}
