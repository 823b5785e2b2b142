"""`oe-conform` on HTTP targets: run, replay, reports, lists; every mistake is one clear line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from conformance.cli.main import main
from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.mutants.http.table import http_mutants
from conformance.reports.json_report import schema
from conformance.runtimes import registry

PROFILE = ("--profile", "runtimes/fixture@1", "--scripted")


@dataclass(frozen=True)
class Done:
    """What a command ended with."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(name="oe")
def fixture_oe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The command line in an empty directory, where the fixture's profile is a shipped one."""
    monkeypatch.chdir(tmp_path)
    profile = fixture_profile()
    known = {profile.id: profile, **registry.runtime_profiles()}
    monkeypatch.setattr(registry, "runtime_profiles", lambda: known)

    def run(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


def mutant(name: str) -> HttpMutant:
    return next(each for each in http_mutants() if each.name == name)


def test_a_right_server(oe: Run) -> None:
    """Conformant, exit code 0, and every report is written and legal."""
    with serving() as server:
        done = oe(
            *("run", "--target", server.origin, *PROFILE, "--context-tokens", "1024", "-j", "2"),
            *("--report", "json:r.json", "--report", "junit:r.xml", "--report", "markdown:r.md"),
        )
    assert done.code == 0, done.out + done.err
    assert "conformant to openai-chat 1.0" in done.out
    report = json.loads(Path("r.json").read_text())
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert report["target"]["class"] == "http-runtime"
    runtime = report["target"]["runtime"]
    assert runtime["profile"] == "fixture@1"
    assert runtime["digest"] == fixture_profile().digest
    assert runtime["observed"] == {"build": "fixture-1", "model": "scripted"}
    suites = ET.parse("r.xml").getroot()  # noqa: S314 - written by ourselves
    names = {f"{name} 1.0" for name in fixture_profile().contracts}
    assert {suite.get("name") for suite in suites} == names
    assert "fixture" in Path("r.md").read_text()


def test_a_faulty_server_and_its_replay(oe: Run) -> None:
    """The evidence shows the call and how to see it again; a replay does, until it is mended."""
    rows = ("--id", "OE-HTTP-CHAT-031")
    with serving(mutant("chat-zero-is-one")) as server:
        done = oe("run", "--target", server.origin, *PROFILE, *rows, "--report", "json:r.json")
        assert done.code == 1
        assert "a generated text" in done.out
        assert "curl -sNi -X POST" in done.out
        stored = next(Path(".oe-conform/failures").iterdir()).stem
        assert f"oe-conform replay {stored} --target {server.origin}" in done.out
        again = oe("replay", stored, "--target", server.origin, *PROFILE)
        assert again.code == 1
        assert again.out.startswith("FAILED")
    call = next(
        row["failure"]["call"]
        for row in json.loads(Path("r.json").read_text())["requirements"]
        if row["id"] == "OE-HTTP-CHAT-031"
    )
    assert call["method"] == "POST /v1/chat/completions"
    assert call["status"] == "200"
    with serving() as server:
        mended = oe("replay", stored, "--target", server.origin, *PROFILE)
    assert (mended.code, mended.out.partition(":")[0]) == (0, "FIXED")


def test_a_baseline_of_an_operator(oe: Run) -> None:
    """It adds to what the profile knows."""
    rows = ("--id", "OE-HTTP-CHAT-031")
    with serving(mutant("chat-zero-is-one")) as server:
        where = ("--target", server.origin, *PROFILE, *rows, "--baseline", "known.toml")
        assert oe("run", *where, "--update-baseline").code == 0
        assert oe("run", *where).code == 0
    with serving() as server:
        where = ("--target", server.origin, *PROFILE, *rows, "--baseline", "known.toml")
        done = oe("run", *where)
    assert done.code == 1
    assert "stale" in done.out


def test_no_output_in_reports(oe: Run) -> None:
    """What the server answered is in no report and on no terminal, unless asked for."""
    with serving(mutant("chat-usage-total")) as server:
        done = oe(
            *("run", "--target", server.origin, *PROFILE, "--id", "OE-HTTP-CHAT-010"),
            *("--report", "json:r.json", "--report", "junit:r.xml", "--report", "markdown:r.md"),
        )
        shown = oe(
            *("run", "--target", server.origin, *PROFILE, "--id", "OE-HTTP-CHAT-010"),
            *("--include-payloads", "--report", "json:p.json"),
        )
    assert done.code == 1
    everything = (
        done.out
        + done.err
        + "".join(Path(f"r.{kind}").read_text() for kind in ("json", "xml", "md"))
    )
    assert "epsilon" not in everything
    assert "epsilon" in shown.out
    assert "epsilon" in Path("p.json").read_text()


def test_ctrl_c_and_time_limit(oe: Run) -> None:
    """A server that hangs does not hold a run that has a limit."""
    with serving(mutant("wedged-by-bad-stop")) as server:
        done = oe(
            *("run", "--target", server.origin, *PROFILE, "--time-limit", "3"),
            *("--id", "OE-HTTP-ERR-011"),
        )
    assert done.code == 2
    assert "ended early: time_limit" in done.out


MISTAKES = {
    "no profile": (["run", "--target", "http://127.0.0.1:1"], "--profile runtimes/NAME@BUILD"),
    "grpc profile": (
        ["run", "--target", "http://127.0.0.1:1", "--profile", "core"],
        "--profile runtimes/NAME@BUILD",
    ),
    "no build": (
        ["run", "--target", "http://127.0.0.1:1", "--profile", "runtimes/llama-cpp"],
        "unknown runtime profile",
    ),
    "path": (["run", "--target", "http://127.0.0.1:1/v1", *PROFILE], "more than an origin"),
    "name": (
        ["run", "--target", "http://localhost:1", *PROFILE, "--ready-timeout", "1"],
        "localhost",
    ),
    "condition": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--condition", "sunshine"],
        "unknown condition",
    ),
    "effect": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--allow", "state-change"],
        "consumptive,inference-canary",
    ),
    "nobody": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--ready-timeout", "0.3"],
        "no usable answer",
    ),
    "grpc option": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--authority", "x"],
        "--authority",
    ),
    "client": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--client", "dynamo"],
        "--client",
    ),
    "http option": (["run", "--target", "127.0.0.1:1", "--scripted"], "for HTTP targets"),
    "runtime on grpc": (
        ["run", "--target", "127.0.0.1:1", "--profile", "runtimes/llama-cpp@b10229"],
        "--target http://host:port",
    ),
    "secret": (
        ["run", "--target", "http://127.0.0.1:1", *PROFILE, "--metadata", "hunter2"],
        "KEY=VALUE",
    ),
    "variable": (
        [
            "run",
            "--target",
            "http://127.0.0.1:1",
            *PROFILE,
            "--metadata-env",
            "authorization=NOT_SET_HERE",
        ],
        "NOT_SET_HERE",
    ),
    "row": (["run", "--target", "http://127.0.0.1:1", *PROFILE, "--id", "OE-CORE-GEN-001"], "id"),
    "mutants": (["mutants", "--http", "--target", "127.0.0.1:1"], "brings its own servers"),
    "explain": (["explain", "OE-HTTP-CHAT-999"], "unknown requirement"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(oe: Run, name: str) -> None:
    """Exit code 2, one line, no traceback, no secret."""
    arguments, said = MISTAKES[name]
    done = oe(*arguments)
    assert done.code == 2, done.out + done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert said in done.err
    assert "hunter2" not in done.err


def test_lists(oe: Run) -> None:
    """The HTTP rows are listed, explained and counted apart from the others."""
    listed = oe("list", "--http", "--id", "OE-HTTP-CHAT-*").out.splitlines()
    assert all(line.startswith("OE-HTTP-CHAT-") for line in listed)
    assert oe("list", "--runtimes").out.count("runtimes/llama-cpp@b10229") == 1
    explained = oe("explain", "OE-HTTP-CHAT-007").out
    assert "OpenAI API reference" in explained
    assert "chat-no-done" in explained
    rows = [
        json.loads(line) for line in oe("requirements", "--http", "--json").out.splitlines()[:-1]
    ]
    assert {row["profile"] for row in rows} >= {"http-common", "openai-chat"}
    assert "## openai-chat 1.0" in oe("requirements", "--http", "--markdown").out
    assert "OE-HTTP" not in oe("requirements", "--json").out


def test_mutants(oe: Run) -> None:
    """The matrix of faulty HTTP servers from the command line."""
    done = oe("mutants", "--http", "--name", "chat-no-done", "--own-only")
    assert done.code == 0, done.out + done.err
    assert "kill rate 1/1" in done.out
