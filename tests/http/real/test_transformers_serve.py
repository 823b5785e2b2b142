"""Transformers Serve, serving the scripted model, is exactly as its profile says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.runtimes.registry import runtime_profile
from tests.http.real.servers import RealServer, free_port, profile_of, started, unjudged, version_of
from tools.scripted_model import CONTEXT, HF_NAME

INSTALL = "'transformers[serving]==5.24.0'"

# The server does not say which version it is.
SILENT = frozenset({"OE-HTTP-PROBE-003"})


@pytest.fixture(name="server", scope="module")
def fixture_server(
    scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    """The build is the package's version."""
    for needed in ("fastapi", "accelerate"):
        version_of(needed, INSTALL)
    profile = profile_of("transformers-serve", version_of("transformers", INSTALL), INSTALL)
    port, log = free_port(), tmp_path_factory.mktemp("transformers") / "log"
    command = ["-m", "transformers.cli.transformers", "serve", str(scripted / HF_NAME)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with started(command, port, log) as origin:
        yield RealServer(origin, profile, context_tokens=CONTEXT)


def test_its_deviations_are_those_of_the_profile(server: RealServer) -> None:
    """Every known one is seen as described, none besides, and nothing else goes unjudged."""
    report = server.judged()
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = {each.requirement for each in runtime_profile(server.profile).deviations}
    assert deviations == set(report.comparison.known)
    assert unjudged(report) <= SILENT
