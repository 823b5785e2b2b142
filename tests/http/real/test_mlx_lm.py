"""MLX-LM's server, serving the scripted model, is exactly as its profile says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.runtimes.registry import runtime_profile
from tests.http.real.servers import RealServer, free_port, profile_of, started, unjudged, version_of
from tools.scripted_model import CONTEXT, HF_NAME

INSTALL = "'mlx-lm==0.31.3' 'mlx[cpu]==0.31.2'"

# Requests of these end the thread that generates, so each needs a server of its own.
DEADLY = ("OE-HTTP-ERR-011", "OE-HTTP-COMP-029")

# Many faults are answered by closing the connection. OE-HTTP-ERR-001 is about that, and these have
# nothing to look at: ranges, missing fields, errors of large requests, logprobs of Completions. And
# the server does not say which version it is.
SILENT = frozenset(
    {
        "OE-HTTP-ERR-005",
        "OE-HTTP-ERR-007",
        "OE-HTTP-ERR-010",
        "OE-HTTP-PROBE-003",
        "OE-HTTP-COMP-021",
        "OE-HTTP-COMP-022",
    }
)


@contextmanager
def serving(scripted: Path, folder: Path) -> Iterator[RealServer]:
    """A fresh server. It lists models from the hub's cache, which has to be there."""
    profile = profile_of("mlx-lm", version_of("mlx-lm", INSTALL), INSTALL)
    port, cache = free_port(), folder / "hub"
    cache.mkdir()
    command = ["-m", "mlx_lm", "server", "--model", str(scripted / HF_NAME)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with started(command, port, folder / "log", environment={"HF_HUB_CACHE": str(cache)}) as origin:
        yield RealServer(origin, profile, context_tokens=CONTEXT)


def test_its_deviations_are_those_of_the_profile(scripted: Path, tmp_path: Path) -> None:
    """Every known one is seen as described, none besides, and nothing else goes unjudged."""
    with serving(scripted, tmp_path) as server:
        report = server.judged(excluded=DEADLY)
    assert report.comparison is not None
    assert report.comparison.problems == ()
    deviations = {each.requirement for each in runtime_profile(server.profile).deviations}
    assert deviations - set(DEADLY) == set(report.comparison.known)
    assert unjudged(report) <= SILENT


def test_a_bad_stop_value_ends_it(scripted: Path, tmp_path: Path) -> None:
    """Health answers 200, and inference hangs: found within the limit of the rule, here a tenth
    of it because the scripted model answers in milliseconds.
    """
    with serving(scripted, tmp_path) as server:
        report = server.judged(ids=DEADLY[:1], slow_factor=0.1)
    assert report.comparison is not None
    assert report.comparison.problems == ()
    assert DEADLY[0] in report.comparison.known
