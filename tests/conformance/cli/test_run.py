from __future__ import annotations

import importlib.util
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from tests.conformance.cli.conftest import Run
from tests.conformance.fake_engine import Behaviour, FakeEngine

SCHEMA = json.loads(
    (resources.files("conformance.wire") / "schema" / "transcript-1.json").read_text("utf-8")
)
FEW = ("--budget", "quick", "--id", "OE-CORE-GEN-01?")


def test_a_right_engine_exits_0_with_a_report(oe_conform: Run, engine: FakeEngine) -> None:
    """Progress on stderr, the verdict on stdout."""
    done = oe_conform("run", "--target", engine.address, *FEW)
    assert done.returncode == 0, done.stderr
    assert "pass           OE-CORE-GEN-016" in done.stderr
    assert "partial: core 1.0" in done.stdout.splitlines()[-1]


def test_a_wrong_engine_exits_1_and_the_failure_replays(
    oe_conform: Run, wrong: FakeEngine, engine: FakeEngine, tmp_path: Path
) -> None:
    """The printed replay line works: FAILED on the same engine, FIXED on a right one."""
    done = oe_conform("run", "--target", wrong.address, *FEW)
    assert done.returncode == 1
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("  replay ")]
    name = line.split()[3]
    assert (tmp_path / ".oe-conform" / "failures" / f"{name}.json").is_file()
    again = oe_conform("replay", name, "--target", wrong.address)
    assert (again.returncode, again.stdout.split(":")[0]) == (1, "FAILED")
    fixed = oe_conform("replay", "OE-CORE-GEN-016", "--target", engine.address)
    assert (fixed.returncode, fixed.stdout.split(":")[0]) == (0, "FIXED")


def test_reports_are_written(oe_conform: Run, engine: FakeEngine, tmp_path: Path) -> None:
    """In every format that was asked for."""
    files = ("json:r.json", "junit:r.xml", "markdown:r.md")
    options = [option for file in files for option in ("--report", file)]
    done = oe_conform("run", "--target", engine.address, *FEW, *options)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["schema_version"] == 1
    assert (tmp_path / "r.xml").read_text().startswith("<?xml")
    assert (tmp_path / "r.md").read_text().startswith("## oe-conform")


@pytest.mark.parametrize("payloads", [(), ("--include-payloads",)])
def test_a_recorded_run_is_judged_the_same(
    oe_conform: Run, engine: FakeEngine, tmp_path: Path, payloads: tuple[str, ...]
) -> None:
    """Every call of the checks is in the file, as the schema says, and no law finds anything."""
    rows = ("--id", "OE-CORE-STREAM-00?")
    done = oe_conform("run", "--target", engine.address, *rows, "--record", "seen", *payloads)
    assert done.returncode == 0
    calls = (tmp_path / "seen" / "calls.jsonl").read_text().splitlines()
    assert len(calls) == int(done.stdout.splitlines()[-2].split()[0])
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for call in calls:
        validator.validate(json.loads(call))
    judged = oe_conform("judge", "seen")
    assert judged.returncode == 0, judged.stdout
    assert f"{len(calls)} calls; " in judged.stdout
    assert ("redacted and were not judged by" in judged.stdout) == (not payloads)


def test_a_recording_holds_no_content_unasked(
    oe_conform: Run, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No prompt, no output text, no credential; with --include-payloads the prompts are there."""
    monkeypatch.setenv("TOKEN", "a-secret-credential")
    given = ("--metadata-env", "x-token=TOKEN", "--id", "OE-CORE-ABORT-004")
    texts = []
    for name, asked in (("hidden", ()), ("shown", ("--include-payloads",))):
        oe_conform("run", "--target", engine.address, *given, "--record", name, *asked)
        files = (tmp_path / name).iterdir()
        texts.append("".join(file.read_text() for file in files))
    hidden, shown = texts
    assert "Once upon a time" not in hidden
    assert "Once upon a time" in shown
    assert "a-secret-credential" not in hidden + shown


def test_a_credential_is_sent_and_never_shown(
    oe_conform: Run, wrong: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the output, not in a report, not in a stored failure."""
    options = ("--metadata-env", "authorization=MY_SECRET", "--report", "json:r.json")
    monkeypatch.setenv("MY_SECRET", "hunter2hunter2")
    done = oe_conform("run", "--target", wrong.address, *FEW, *options, "--include-payloads")
    assert done.returncode == 1
    kept = [path.read_text() for path in tmp_path.rglob("*.json")]
    assert "hunter2" not in "".join([done.stdout, done.stderr, *kept])
    assert "$MY_SECRET" in done.stdout


@contextmanager
def silent_server() -> Iterator[str]:
    """Accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class Quiet(BaseHTTPRequestHandler):
    """Answers without writing a log line for each request."""

    def log_message(self, *_: object) -> None:
        """Nothing: stderr is what the test looks at."""


@contextmanager
def http_server() -> Iterator[str]:
    """An HTTP/1 server."""
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def nothing() -> Iterator[str]:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("server", "said"),
    [(nothing, "refused"), (silent_server, "nothing"), (http_server, "HTTP")],
)
def test_a_target_that_cannot_be_judged_is_one_line(
    oe_conform: Run, server: object, said: str
) -> None:
    """Exit code 2 within the limit, and the line says what was found there."""
    with server() as address:  # type: ignore[operator]
        done = oe_conform("run", "--target", address, "--ready-timeout", "2")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert said.lower() in done.stderr.lower()
    assert done.stdout == ""


def test_a_tls_mismatch_is_one_line(engine: FakeEngine) -> None:
    """From a process of its own: gRPC writes its own log lines to the real stderr."""
    command = [sys.executable, "-m", "conformance", "run", "--target", engine.address, "--tls"]
    done = subprocess.run(
        [*command, "--ready-timeout", "2"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "TLS" in done.stderr


BAD_INPUT = {
    "scheme": (["run", "--target", "http://localhost:1"], "--profile runtimes/NAME@BUILD"),
    "no port": (["run", "--target", "localhost"], "port"),
    "profile": (["run", "--profile", "cores"], "perhaps core"),
    "id": (["run", "--id", "OE-CORE-GEN-0001"], "perhaps OE-CORE-GEN-001"),
    "glob": (["run", "--id", "OE-X-*"], "matches no requirement id"),
    "budget": (["run", "--budget", "huge"], "quick"),
    "jobs": (["run", "-j", "0"], "1<=x<=64"),
    "slow factor": (["run", "--slow-factor", "0.5"], "1"),
    "report format": (["run", "--report", "yaml:x"], "json, junit, markdown"),
    "record folder": (["run", "--target", "ENGINE", "--record", "/dev/null/x"], "/dev/null/x"),
    "report folder": (["run", "--report", "json:/no/such/folder/x"], "/no/such/folder"),
    "ca file": (["run", "--target", "h:1", "--ca", "/no/such.pem"], "/no/such.pem"),
    "cert without key": (["run", "--target", "h:1", "--cert", "x"], "--key"),
    "metadata": (["run", "--target", "h:1", "--metadata", "novalue"], "key=value"),
    "variable": (["run", "--target", "h:1", "--metadata-env", "a=NOT_SET_HERE"], "NOT_SET_HERE"),
    "model": (["run", "--target", "ENGINE", "--model", "gpt-9"], "fake-model"),
    "dialect": (["run", "--target", "ENGINE", "--dialect", "klingon"], "klingon"),
    "option": (["run", "--tarhet", "h:1"], "--tarhet"),
    "command": (["rnu"], "rnu"),
    "explain": (["explain", "OE-CORE-GEN-1"], "unknown requirement"),
    "replay": (["replay", "OE-CORE-GEN-001"], "no failure"),
    "judge file": (["judge", "/no/such/file"], "/no/such/file"),
    "mutant": (["mutants", "--name", "no-such"], "no-such"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_clear_line(oe_conform: Run, engine: FakeEngine, name: str) -> None:
    """What, where, what was expected; exit code 2; no traceback."""
    arguments, said = BAD_INPUT[name]
    done = oe_conform(*(engine.address if word == "ENGINE" else word for word in arguments))
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("oe-conform: ")
    assert said in done.stderr


def test_no_target_without_the_engine_extra(
    oe_conform: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which of the two to give."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: None if name == "torch" else find(name, *rest),
    )
    done = oe_conform("run")
    assert done.returncode == 2
    assert "oe-conform[engine]" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_ctrl_c_gives_a_partial_report(engine: FakeEngine, tmp_path: Path) -> None:
    """Exit code 2, the report says so, and nothing runs on the target afterwards."""
    command = [sys.executable, "-m", "conformance", "run", "--target", engine.address]
    with subprocess.Popen(
        [*command, "--budget", "thorough", "--report", "json:r.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("pass"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the run ended early: interrupted" in out
    assert json.loads((tmp_path / "r.json").read_text())["ended_early"] == "interrupted"
    waiting = threading.Event()
    for _ in range(200):
        if not engine.active:
            break
        waiting.wait(0.05)
    assert engine.active == {}


def test_a_baseline_makes_known_failures_green(oe_conform: Run, tmp_path: Path) -> None:
    """--update-baseline writes what fails; with it the run is green, and every report says why."""
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}))) as wrong:
        common = ("run", "--target", wrong.address, "--id", "OE-CORE-GEN-01*", "--budget", "quick")
        assert oe_conform(*common, "--baseline", "known.toml", "--update-baseline").returncode == 0
        reports = ("--report", "junit:report.xml", "--report", "json:report.json")
        done = oe_conform(*common, "--baseline", "known.toml", *reports)
    assert done.returncode == 0
    assert "known    OE-CORE-GEN-016" in done.stdout
    assert "known deviation: not explained yet" in (tmp_path / "report.xml").read_text()
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["verdict"]["claim"] == "failure"
    assert [entry["id"] for entry in content["baseline"]["known"]] == ["OE-CORE-GEN-016"]


def test_an_update_needs_a_file(oe_conform: Run, engine: FakeEngine) -> None:
    """One clear line, and no run."""
    done = oe_conform("run", "--target", engine.address, "--update-baseline")
    assert done.returncode == 2
    assert "--baseline FILE" in done.stderr
