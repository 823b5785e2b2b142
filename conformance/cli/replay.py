"""`oe-conform replay`: send a stored failing request again and say whether it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import rich_click as click

from conformance.checks import all_checks, http_checks
from conformance.checks.check import Check
from conformance.cli.http_target import (
    HttpWords,
    http_options,
    http_profile,
    http_target,
    is_http,
)
from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError, UnreachableError
from conformance.reports.evidence import evidence
from conformance.reports.http_call import http_evidence
from conformance.runner.http_session import HttpOptions, open_http_session
from conformance.runner.opened import Opened
from conformance.runner.replay import Replayed
from conformance.runner.replay import replay as run_again
from conformance.runner.result import Failure
from conformance.runner.session import Options, open_session
from conformance.runner.store import DIRECTORY, StoredFailure, load


@click.command()
@click.argument("failure")
@target_options
@http_options
@click.option("--profile", "profiles", multiple=True, help="HTTP: the runtime profile.")
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
    http: HttpWords,
    profiles: tuple[str, ...],
    times: int,
    model: str,
    slow_factor: float,
    failures: Path,
) -> int:
    """Run FAILURE (a file, its name, or a requirement id) again.

    Exit codes: 0 it did not show again, 1 it did, at least once.
    """
    stored = load(failure, failures)
    over_http = is_http(where)
    if not over_http and (http.given or profiles):
        raise ConfigError("--profile without an HTTP target", expected="--target http://host:port")
    check = (http_checks() if over_http else all_checks()).get(stored.check)
    if check is None:
        raise ConfigError(
            f"the failure was found by the check of {stored.check}, which this version lacks"
        )
    if over_http:
        subject = http_profile(profiles, where.config)
        opened = open_http_session(
            HttpOptions(
                target=http_target(where),
                profile=subject.profile,
                worker=subject.worker,
                stream_errors=subject.stream_errors,
                model=model,
                scripted=http.scripted,
                conditions=http.conditions,
                allowed=http.allowed,
                context_tokens=http.context_tokens,
                slow_factor=slow_factor,
            )
        )
        again = _again(opened, check, stored, times)
        runtime = opened.declared.profile_name
        return _tell(
            again,
            stored,
            lambda last: http_evidence(last, opened.registry, opened.address, runtime),
        )
    with where.open() as target:
        session = open_session(Options(target=target, model=model, slow_factor=slow_factor))
        again = _again(session, check, stored, times)
    return _tell(
        again, stored, lambda last: evidence(last, session.registry, target, session.routes)
    )


def _again(session: Opened, check: Check, stored: StoredFailure, times: int) -> Replayed:
    connection = session.connect()
    try:
        probe = session.probe(stored.check, connection)
        return run_again(check, probe, stored.case, stored.requirement, times)
    finally:
        connection.close()


def _tell(again: Replayed, stored: StoredFailure, shown: Callable[[Failure], Iterator[str]]) -> int:
    broken = again.violations
    if not again.judged:
        raise UnreachableError(f"{stored.requirement}: no replay judged anything on this target")
    state = "FIXED" if not broken else "FAILED" if len(broken) == again.judged else "FLAKY"
    click.echo(f"{state}: {stored.requirement} broke in {len(broken)} of {again.judged} replays")
    if broken:
        last = broken[-1]
        failure = Failure(
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
        click.echo("\n".join(shown(failure)))
    return 1 if broken else 0
