"""MLX-LM's server, serving the scripted model, is exactly as its profile says."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.runner.selection import Selection
from conformance.runtimes.registry import runtime_profile, runtime_profiles
from tests.http.real.servers import RealServer, free_port, needs, started
from tools.scripted_model import HF_NAME

needs("mlx_lm", "'mlx-lm==0.31.3' 'mlx[cpu]==0.31.2'")

# Requests of these end the thread that generates, so each needs a server of its own.
DEADLY = ("OE-HTTP-ERR-011", "OE-HTTP-COMP-029")


@contextmanager
def serving(scripted: Path, folder: Path) -> Iterator[RealServer]:
    """A fresh server. It lists models from the hub's cache, which has to be there."""
    profile = f"mlx-lm@{importlib.metadata.version('mlx-lm')}"
    if profile not in runtime_profiles():
        pytest.skip(f"no profile {profile}: pip install 'mlx-lm==0.31.3' 'mlx[cpu]==0.31.2'")
    port, cache = free_port(), folder / "hub"
    cache.mkdir()
    command = ["-m", "mlx_lm", "server", "--model", str(scripted / HF_NAME)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with started(command, port, folder / "log", environment={"HF_HUB_CACHE": str(cache)}) as origin:
        yield RealServer(origin, f"runtimes/{profile}", context_tokens=2048)


def test_its_deviations_are_those_of_the_profile(scripted: Path, tmp_path: Path) -> None:
    """Every known one is seen as described, and none besides."""
    with serving(scripted, tmp_path) as server:
        report = server.judged(Selection(excluded=DEADLY))
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = {each.requirement for each in runtime_profile(server.profile).deviations}
    assert deviations - set(DEADLY) <= set(report.comparison.known)


def test_a_bad_stop_value_ends_it(scripted: Path, tmp_path: Path) -> None:
    """Health answers 200, and inference hangs: found within the limit of the rule."""
    with serving(scripted, tmp_path) as server:
        report = server.judged(Selection(ids=(DEADLY[0],)))
    assert report.comparison is not None
    assert report.comparison.problems == ()
    assert DEADLY[0] in report.comparison.known
