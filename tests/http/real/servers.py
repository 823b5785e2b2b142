"""Starts servers of other projects for tests, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import SkipReason, Status
from conformance.runner.budget import BUDGETS
from conformance.runner.http_session import HttpOptions
from conformance.runner.report import Report
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.registry import runtime_profile, runtime_profiles

START_SECONDS = 120.0
_ASK_SECONDS = 0.05
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class RealServer:
    """A running server and what the operator knows of it. scripted: it serves that model."""

    origin: str
    profile: str
    conditions: tuple[str, ...] = ()
    context_tokens: int = 0
    scripted: bool = True

    def judged(
        self,
        *,
        ids: tuple[str, ...] = (),
        excluded: tuple[str, ...] = (),
        slow_factor: float = 1.0,
        budget: str = "standard",
    ) -> Report:
        """A run, of everything if nothing is selected."""
        return run_http(
            HttpOptions(
                HttpTarget(parse_origin(self.origin)),
                runtime_profile(self.profile),
                scripted=self.scripted,
                conditions=self.conditions,
                context_tokens=self.context_tokens,
                selection=Selection(ids=ids, excluded=excluded),
                budget=BUDGETS[budget],
                slow_factor=slow_factor,
                seed=1,
            )
        )


def unjudged(report: Report) -> frozenset[str]:
    """Rows that apply and are neither kept nor broken, save those that need a testing hook."""
    silent = {Status.BLOCKED, Status.ERROR, Status.FLAKY}
    return frozenset(
        each.requirement
        for each in report.judgements
        if each.status in silent or each.reason is SkipReason.UNCLAIMED
    )


def python() -> str:
    """The interpreter that has the servers' packages; they need not be in the suite's own."""
    return os.environ.get("REALSERVERS_PYTHON", sys.executable)


def version_of(distribution: str, install: str) -> str:
    """The version of a package there; skips the test when it is missing."""
    ask = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    told = subprocess.run(
        [python(), "-c", ask, distribution], capture_output=True, text=True, check=False
    )
    if told.returncode:
        pytest.skip(f"{distribution} is not installed: pip install {install}")
    return told.stdout.strip()


def profile_of(name: str, build: str, install: str) -> str:
    """The id of the profile of a build; skips the test when there is none."""
    if f"{name}@{build}" not in runtime_profiles():
        pytest.skip(f"no profile of {name} {build}: pip install {install}")
    return f"runtimes/{name}@{build}"


def free_port() -> int:
    """A port of loopback that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(
    command: Sequence[str],
    port: int,
    log: Path,
    *,
    health: str = "/health",
    environment: Mapping[str, str] | None = None,
    start_seconds: float = START_SECONDS,
) -> Iterator[str]:
    """Run a server until the block ends, from the time that its health route answers 200, which
    may take `start_seconds`. Yields its origin.
    """
    origin = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python(), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **(environment or {})},
        )
        try:
            _wait_healthy(process, origin + health, log, start_seconds)
            yield origin
        finally:
            process.terminate()
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _wait_healthy(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float) -> None:
    """Ask until the answer is 200. Nothing tells when another project's server is up, so what is
    waited for between two questions is its end.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with _OPENER.open(url, timeout=5):
                return
        except OSError:
            if _ended(process, _ASK_SECONDS):
                break
    said = log.read_text("utf-8", errors="replace")[-2000:]
    raise AssertionError(f"{url} does not answer 200 (exit status {process.poll()}):\n{said}")


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ends within so many seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
