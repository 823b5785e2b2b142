"""`oe-conform run`: judge a target and write reports."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from conformance.cli.http_target import (
    HttpWords,
    http_options,
    http_profile,
    http_target,
    is_http,
)
from conformance.cli.recorder import Recorder
from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError
from conformance.model.client import client_set, client_sets
from conformance.model.registry import Registry, default_registry
from conformance.model.requirement import Level
from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT
from conformance.reports import FORMATS, write_report
from conformance.reports.terminal import Progress, print_report
from conformance.runner.baseline import Baseline, load_baseline, shown
from conformance.runner.baseline_file import update_baseline
from conformance.runner.budget import BUDGETS
from conformance.runner.clients import all_met
from conformance.runner.events import RunEvent
from conformance.runner.http_session import HttpOptions
from conformance.runner.run import run as run_suite
from conformance.runner.run import run_http
from conformance.runner.selection import Selection, validated
from conformance.runner.session import Options
from conformance.runner.store import DIRECTORY, save
from conformance.runtimes.contracts import http_registry


@click.command()
@target_options
@http_options
@click.option("--model", default="", help="Model to test. Default: the first one served.")
@click.option("--profile", "profiles", multiple=True, help="Judge only this profile; repeatable.")
@click.option("--id", "ids", multiple=True, help="Run only this requirement id or glob.")
@click.option("--exclude", multiple=True, help="Leave out this id or glob: a partial verdict.")
@click.option(
    "--level",
    type=click.Choice([level.value for level in Level], case_sensitive=False),
    default=Level.MAY.value,
    help="Weakest level that is run.",
)
@click.option("--budget", type=click.Choice(list(BUDGETS)), default="standard")
@click.option("--seed", type=int, help="Repeats the generated requests of an earlier run.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, help="Checks at a time.")
@click.option("--time-limit", type=click.FloatRange(min=0.1), help="Seconds for the whole run.")
@click.option(
    "--ready-timeout",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds until the target must answer.",
)
@click.option(
    "--slow-factor",
    type=click.FloatRange(min=1.0),
    default=1.0,
    show_default=True,
    help="Widens every time limit.",
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="NAME",
    help=f"Judge besides what this client needs: {', '.join(client_sets())}. Advisory: it changes "
    "no verdict.",
)
@click.option(
    "--require-client", is_flag=True, help="Exit with 1 when a need of a --client is not met."
)
@click.option("--dialect", default="", help="Wire dialect, where schema_release does not tell.")
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT:FILE",
    help=f"Write a report; formats: {', '.join(FORMATS)}. Repeatable.",
)
@click.option(
    "--include-payloads",
    is_flag=True,
    help="Show prompts, tokens and outputs: in reports, on the terminal, in recordings.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write every call into this directory for `oe-conform judge`; redacted, unless "
    "--include-payloads.",
)
@click.option(
    "--baseline",
    "baseline_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Known deviations: the run is green when it shows these and no others.",
)
@click.option(
    "--update-baseline",
    "update",
    is_flag=True,
    help="Make the baseline say what this run has shown.",
)
@click.option(
    "--failures",
    type=click.Path(file_okay=False, path_type=Path),
    default=DIRECTORY,
    show_default=True,
    help="Where failing requests are stored for `oe-conform replay`.",
)
def run(
    *,
    where: TargetOptions,
    http: HttpWords,
    model: str,
    profiles: tuple[str, ...],
    ids: tuple[str, ...],
    exclude: tuple[str, ...],
    level: str,
    budget: str,
    seed: int | None,
    jobs: int,
    time_limit: float | None,
    ready_timeout: float,
    slow_factor: float,
    clients: tuple[str, ...],
    require_client: bool,
    dialect: str,
    reports: tuple[str, ...],
    include_payloads: bool,
    record: Path | None,
    baseline_file: Path | None,
    update: bool,
    failures: Path,
) -> int:
    """Judge a target and say which profiles it may claim."""
    outputs = [_output(report) for report in reports]
    over_http = is_http(where)
    if over_http and (clients or require_client or dialect or record):
        names = "--client, --require-client, --dialect and --record"
        raise ConfigError(f"one of {names} with an HTTP target", expected="a gRPC target")
    if not over_http and (http.given or any("/" in name for name in profiles)):
        names = "--scripted, --condition, --allow and runtime profiles"
        raise ConfigError(f"{names} are for HTTP targets", expected="--target http://host:port")
    registry = http_registry() if over_http else default_registry()
    runtime, terms = http_profile(profiles, where.config) if over_http else (None, None)
    # Before an engine is started: a wrong name should not cost the time that takes.
    wanted = () if over_http else profiles
    selection = validated(Selection(wanted, ids, exclude, Level(level)), registry)
    needs = tuple(client_set(name) for name in dict.fromkeys(clients))
    if require_client and not needs:
        raise ConfigError("--require-client without a client", expected="--client NAME")
    baseline = _baseline(baseline_file, registry, update=update)
    recorder = Recorder(record, payloads=include_payloads)

    def listener(event: RunEvent) -> None:
        progress(event)
        recorder.event(event)

    target = None
    if runtime is not None:
        http_run = HttpOptions(
            target=http_target(where),
            profile=runtime,
            model=model,
            scripted=http.scripted,
            conditions=http.conditions,
            allowed=http.allowed,
            context_tokens=http.context_tokens,
            worker=terms,
            budget=BUDGETS[budget],
            seed=seed,
            jobs=jobs,
            selection=selection,
            ready_timeout=ready_timeout,
            slow_factor=slow_factor,
            time_limit=time_limit,
            baseline=baseline,
        )
        with Progress() as progress:
            report = run_http(http_run, listener)
    else:
        with where.open() as target, Progress() as progress, recorder.open():
            options = Options(
                target=target,
                model=model,
                dialect=dialect,
                budget=BUDGETS[budget],
                seed=seed,
                jobs=jobs,
                selection=selection,
                ready_timeout=ready_timeout,
                slow_factor=slow_factor,
                time_limit=time_limit,
                recorder=recorder.call,
                baseline=baseline,
                clients=needs,
            )
            report = run_suite(options, listener)
    for failure in report.failures:
        save(failure, failures)
    if update and baseline_file is not None:
        update_baseline(baseline_file, baseline, shown(report.failures, report.judgements))
    print_report(report, target, payloads=include_payloads)
    for kind, path in outputs:
        write_report(report, kind, path, include_payloads=include_payloads)
    # An updated baseline says what was shown, so the run is as it says, unless nothing was judged.
    code = report.verdict.exit_code
    code = CONFORMANT if update and code == NOT_CONFORMANT else code
    unmet = require_client and not all_met(report.clients)
    return NOT_CONFORMANT if unmet and code == CONFORMANT else code


def _baseline(path: Path | None, registry: Registry, *, update: bool) -> Baseline | None:
    if path is None:
        if update:
            raise ConfigError("--update-baseline without a file", expected="--baseline FILE")
        return None
    # The first update makes the file.
    return None if update and not path.exists() else load_baseline(path, registry)


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
