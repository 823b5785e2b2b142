"""Starts servers of other projects for tests, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.runner.http_session import HttpOptions
from conformance.runner.report import Report
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.registry import runtime_profile

START_SECONDS = 120.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class RealServer:
    """A running server and what the operator knows of it."""

    origin: str
    profile: str
    conditions: tuple[str, ...] = ()
    context_tokens: int = 0

    def judged(self, selection: Selection = Selection()) -> Report:  # noqa: B008 - frozen
        """A run, of everything if nothing is selected, with the scripted model's expectations."""
        return run_http(
            HttpOptions(
                HttpTarget(parse_origin(self.origin)),
                runtime_profile(self.profile),
                scripted=True,
                conditions=self.conditions,
                context_tokens=self.context_tokens,
                selection=selection,
                seed=1,
            )
        )


def needs(module: str, install: str) -> None:
    """Skip the tests of a server whose package is not there."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install {install}", allow_module_level=True)


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
) -> Iterator[str]:
    """Run a server until the block ends, from the time that its health route answers 200.
    Yields its origin.
    """
    origin = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **(environment or {})},
        )
        try:
            _wait_healthy(process, origin + health, log)
            yield origin
        finally:
            process.terminate()
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _wait_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with _OPENER.open(url, timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    said = log.read_text("utf-8", errors="replace")[-2000:]
    raise AssertionError(f"{url} does not answer 200 (exit status {process.poll()}):\n{said}")
