"""A real llama.cpp, serving the scripted model, is exactly as its profile says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.cli.main import cli
from conformance.model.status import Status
from conformance.runner.report import Report
from conformance.runtimes.registry import runtime_profile
from reference_engine.errors import ModelNotFoundError
from reference_engine.model.catalog import locate
from tests.http.real.servers import RealServer, free_port, profile_of, started, unjudged, version_of
from tools.scripted_model import CONTEXT, GGUF_NAME

SCRIPT = str(Path(__file__).with_name("llama_cpp_server.py"))
INSTALL = "xllamacpp==2026.8.10229"
SLOTS = 2
CONDITIONS = ("parallel-2", "metrics-flag", "slots-flag")
SHARED = "kv-unified"
ERRORS = {
    "chat": "OE-HTTP-CHAT-035",
    "completions": "OE-HTTP-COMP-032",
    "responses": "OE-HTTP-RESP-020",
}


# Of a model that takes its time, so that an answer can be left before it is whole.
OPEN_CONTEXT = 1024
# Nothing says what these need: when the model ends by itself, where it cuts a character, or which
# build it is. Whether an answer is still on its way when its client leaves, and whether it has
# characters of several bytes, is up to the machine and the model.
SILENT = frozenset(
    {
        "OE-HTTP-CHAT-011",
        "OE-HTTP-CHAT-017",
        "OE-HTTP-COMP-010",
        "OE-HTTP-COMP-016",
        "OE-HTTP-RESP-015",
        "OE-HTTP-RESP-018",
        "OE-HTTP-PROBE-003",
        "OE-HTTP-CANCEL-002",
        "OE-HTTP-CHAT-016",
        "OE-HTTP-COMP-015",
    }
)


@contextmanager
def serving(
    model: Path,
    log: Path,
    *,
    is_scripted: bool = True,
    shared: bool = False,
    context: int = CONTEXT,
) -> Iterator[RealServer]:
    """A server of the installed build, which is the last number of the package's version. shared:
    with one cache for all slots.
    """
    build = f"b{version_of('xllamacpp', INSTALL).rpartition('.')[2]}"
    profile, port = profile_of("llama-cpp", build, INSTALL), free_port()
    words = [SCRIPT, str(model), str(port), str(SLOTS), str(context)]
    words += ["shared"] if shared else []
    stated = (*CONDITIONS, SHARED) if shared else CONDITIONS
    known = runtime_profile(profile).conditions
    with started(words, port, log) as origin:
        conditions = tuple(each for each in stated if each in known)
        yield RealServer(origin, profile, conditions, context, is_scripted)


@pytest.fixture(name="server", scope="module")
def fixture_server(
    scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    with serving(scripted / GGUF_NAME, tmp_path_factory.mktemp("llama-cpp") / "log") as server:
        yield server


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


def test_errors_inside_a_stream(scripted: Path, tmp_path: Path) -> None:
    """A request that fails there is told of as the profile says, on each route that it knows one
    for.
    """
    with serving(scripted / GGUF_NAME, tmp_path / "log", shared=True) as server:
        report = server.judged(ids=tuple(ERRORS.values()))
    profile = runtime_profile(server.profile)
    assert report.comparison is not None
    assert report.comparison.problems == ()
    known = {ERRORS[each.route] for each in profile.stream_errors}
    passed = {each.requirement for each in report.judgements if each.status is Status.PASS}
    assert {"OE-HTTP-CHAT-035", "OE-HTTP-COMP-032"} <= known
    assert passed & set(ERRORS.values()) == known


def test_another_model_shows_the_same_deviations(tmp_path: Path) -> None:
    """SmolLM2, of whose answers nothing is known: all deviations but those that only the scripted
    model shows, none besides, and nothing else goes unjudged.
    """
    try:
        model, _ = locate("smollm2")
    except ModelNotFoundError as missing:
        pytest.skip(str(missing))
    with serving(model, tmp_path / "log", is_scripted=False, context=OPEN_CONTEXT) as server:
        report = server.judged(budget="quick")
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = runtime_profile(server.profile).deviations
    always = {each.requirement for each in deviations if not each.scripted}
    assert always <= set(report.comparison.known) <= {each.requirement for each in deviations}
    assert report.unchecked == ()
    assert unjudged(report) <= SILENT
