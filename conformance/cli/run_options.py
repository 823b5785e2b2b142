"""The options of `oe-conform run` that say what is judged, how hard, and what is written.

Little is imported here: an engine that the run starts should be started at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import rich_click as click

from conformance.errors import ConfigError
from conformance.model.client import client_sets
from conformance.model.requirement import Level
from conformance.runner.budget import BUDGETS
from conformance.runner.store import DIRECTORY

# The names of conformance.reports.FORMATS, whose writers take long to import.
FORMATS = ("json", "junit", "markdown")
# Checks at a time on the engine that the run starts for itself: nobody else is on it, and it
# computes requests that come together in one step. Two cores are busy with it.
OWN_JOBS = 4

_WHAT = (
    click.option("--model", default="", help="Model to test. Default: the first one served."),
    click.option(
        "--profile", "profiles", multiple=True, help="Judge only this profile; repeatable."
    ),
    click.option("--id", "ids", multiple=True, help="Run only this requirement id or glob."),
    click.option("--exclude", multiple=True, help="Leave out this id or glob: a partial verdict."),
    click.option(
        "--level",
        type=click.Choice([level.value for level in Level], case_sensitive=False),
        default=Level.MAY.value,
        help="Weakest level that is run.",
    ),
    click.option(
        "--client",
        "clients",
        multiple=True,
        metavar="NAME",
        help=f"Judge besides what this client needs: {', '.join(client_sets())}. Advisory: it "
        "changes no verdict.",
    ),
    click.option(
        "--require-client", is_flag=True, help="Exit with 1 when a need of a --client is not met."
    ),
    click.option("--dialect", default="", help="Wire dialect, where schema_release does not tell."),
)
_HOW = (
    click.option("--budget", type=click.Choice(list(BUDGETS)), default="standard"),
    click.option("--seed", type=int, help="Repeats the generated requests of an earlier run."),
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1, 64),
        help=f"Checks at a time. Default: 1, or {OWN_JOBS} without --target.",
    ),
    click.option("--time-limit", type=click.FloatRange(min=0.1), help="Seconds for the whole run."),
    click.option(
        "--ready-timeout",
        type=click.FloatRange(min=0.1),
        default=30.0,
        show_default=True,
        help="Seconds until the target must answer.",
    ),
    click.option(
        "--slow-factor",
        type=click.FloatRange(min=1.0),
        default=1.0,
        show_default=True,
        help="Widens every time limit.",
    ),
)
_WRITTEN = (
    click.option(
        "--report",
        "reports",
        multiple=True,
        metavar="FORMAT:FILE",
        help=f"Write a report; formats: {', '.join(FORMATS)}. Repeatable.",
    ),
    click.option(
        "--include-payloads",
        is_flag=True,
        help="Show prompts, tokens and outputs: in reports, on the terminal, in recordings.",
    ),
    click.option(
        "--record",
        type=click.Path(file_okay=False, path_type=Path),
        help="Write every call into this directory for `oe-conform judge`; redacted, unless "
        "--include-payloads.",
    ),
    click.option(
        "--baseline",
        "baseline_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Known deviations: the run is green when it shows these and no others.",
    ),
    click.option(
        "--update-baseline",
        "update",
        is_flag=True,
        help="Make the baseline say what this run has shown.",
    ),
    click.option(
        "--failures",
        type=click.Path(file_okay=False, path_type=Path),
        default=DIRECTORY,
        show_default=True,
        help="Where failing requests are stored for `oe-conform replay`.",
    ),
)


@dataclass(frozen=True, slots=True)
class RunWords:
    """What the user gave of the options above."""

    model: str
    profiles: tuple[str, ...]
    ids: tuple[str, ...]
    exclude: tuple[str, ...]
    level: str
    clients: tuple[str, ...]
    require_client: bool
    dialect: str
    budget: str
    seed: int | None
    jobs: int | None
    time_limit: float | None
    ready_timeout: float
    slow_factor: float
    reports: tuple[str, ...]
    include_payloads: bool
    record: Path | None
    baseline_file: Path | None
    update: bool
    failures: Path

    @property
    def outputs(self) -> tuple[tuple[str, Path], ...]:
        """Format and file of each report. Raises ConfigError for what cannot be written."""
        return tuple(_output(report) for report in self.reports)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options above to a command, which gets them as one `words: RunWords`."""

    @functools.wraps(command)
    def with_words(**arguments: Any) -> Any:
        given = {field.name: arguments.pop(field.name) for field in fields(RunWords)}
        return command(words=RunWords(**given), **arguments)

    for option in reversed((*_WHAT, *_HOW, *_WRITTEN)):
        with_words = option(with_words)
    return with_words


def _output(text: str) -> tuple[str, Path]:
    kind, colon, name = text.partition(":")
    if not colon or not name or kind not in FORMATS:
        raise ConfigError(
            f"--report {text!r}", expected=f"FORMAT:FILE with a format of {', '.join(FORMATS)}"
        )
    path = Path(name)
    if not path.parent.is_dir():
        raise ConfigError(f"--report {text!r}: {path.parent} is not a directory")
    return kind, path
