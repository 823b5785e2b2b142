"""`oe-conform replay`: send a stored failing request again and say whether it still fails."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from conformance.checks import all_checks
from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError, UnreachableError
from conformance.reports.evidence import evidence
from conformance.runner.replay import replay as run_again
from conformance.runner.result import Failure
from conformance.runner.session import Options, open_session
from conformance.runner.store import DIRECTORY, load


@click.command()
@click.argument("failure")
@target_options
@click.option("--times", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option("--model", default="", help="Model to test. Default: the first one served.")
@click.option("--slow-factor", type=click.FloatRange(min=1.0), default=1.0, show_default=True)
@click.option(
    "--failures",
    type=click.Path(file_okay=False, path_type=Path),
    default=DIRECTORY,
    show_default=True,
    help="Where `oe-conform run` stored failing requests.",
)
def replay(
    failure: str,
    *,
    where: TargetOptions,
    times: int,
    model: str,
    slow_factor: float,
    failures: Path,
) -> int:
    """Run FAILURE (a file, its name, or a requirement id) again.

    Exit codes: 0 it did not show again, 1 it did, at least once.
    """
    stored = load(failure, failures)
    check = all_checks().get(stored.check)
    if check is None:
        raise ConfigError(
            f"the failure was found by the check of {stored.check}, which this version lacks"
        )
    with where.open() as target:
        session = open_session(Options(target=target, model=model, slow_factor=slow_factor))
        connection = session.connect()
        try:
            probe = session.probe(stored.check, connection)
            again = run_again(check, probe, stored.case, stored.requirement, times)
        finally:
            connection.close()
    broken = again.violations
    if not again.judged:
        raise UnreachableError(f"{stored.requirement}: no replay judged anything on this target")
    state = "FIXED" if not broken else "FAILED" if len(broken) == again.judged else "FLAKY"
    click.echo(f"{state}: {stored.requirement} broke in {len(broken)} of {again.judged} replays")
    if broken:
        last = broken[-1]
        failure_again = Failure(
            stored.requirement,
            stored.check,
            stored.case,
            last.expected,
            last.actual,
            last.transcript,
            last.event,
            again.judged,
            len(broken),
        )
        click.echo("\n".join(evidence(failure_again, session.registry, target, session.routes)))
    return 1 if broken else 0
