from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import rich_click as click

from conformance.cli import judged, target_options
from conformance.cli.main import COMMANDS, cli
from conformance.cli.run_options import FORMATS, OWN_JOBS
from conformance.errors import ConfigError
from conformance.reports import FORMATS as WRITERS
from conformance.runner.session import Options
from conformance.wire.hooks import Hooks
from tests.conformance.cli.conftest import Run
from tests.conformance.fake_engine import FakeEngine

HEAVY = ("hypothesis", "conformance.checks", "conformance.mutants")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_found_by_its_name(name: str) -> None:
    """It is in the module of that name."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name


def test_an_unknown_command_is_none() -> None:
    """So that click names it in its error."""
    assert cli.get_command(click.Context(cli), "http_target") is None


def test_the_options_offer_the_formats_that_there_are() -> None:
    """The list stands apart from the writers, which take long to import."""
    assert tuple(WRITERS) == FORMATS


def test_run_does_not_import_the_suite_before_it_starts_an_engine() -> None:
    """The suite is imported while the engine is."""
    code = f"import conformance.cli.run, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_an_engine_of_the_runs_own_gets_more_checks_at_a_time(
    oe_conform: Run, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-j counts where it is given; without it a target that was named gets one."""
    jobs: list[int] = []

    def stop(options: Options, _: object) -> None:
        jobs.append(options.jobs)
        raise ConfigError("seen")

    @contextmanager
    def own() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(wait_ready=lambda: None, address=engine.address, hooks=Hooks())

    monkeypatch.setattr(judged, "run_suite", stop)
    monkeypatch.setattr(target_options, "starting_engine", own)
    for words in ([], ["-j", "2"], ["--target", engine.address]):
        assert oe_conform("run", *words).returncode == 2
    assert jobs == [OWN_JOBS, 2, 1]
