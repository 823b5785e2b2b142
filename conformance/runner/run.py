"""A whole run: open the target, judge every row of the plan, and add up the verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from conformance.checks.check import Check
from conformance.model.registry import Registry
from conformance.model.status import SkipReason, Status
from conformance.model.verdict import Judgement, judge_run
from conformance.runner.baseline import against_baseline, compare, shown
from conformance.runner.bystanders import settle_bystanders
from conformance.runner.clients import judge_clients
from conformance.runner.events import Listener, RunStarted, nobody
from conformance.runner.http_session import HttpOptions, open_http_session
from conformance.runner.opened import Opened, RunOptions
from conformance.runner.plan import Row
from conformance.runner.pool import Pool
from conformance.runner.report import Report, environment
from conformance.runner.result import CheckResult
from conformance.runner.session import Options, open_session


def run(
    options: Options,
    listener: Listener = nobody,
    registry: Registry | None = None,
    checks: Mapping[str, Check] | None = None,
) -> Report:
    """Judge a target. Ctrl-C and the time limit give a partial report that says so.

    Raises ConfigError for options that cannot be used and UnreachableError for a target that
    gives no usable answer.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    session = open_session(options, registry, checks)
    report = judge_opened(session, listener, started, clock)
    if report.ended_early:
        return report
    clients = judge_clients(session, options.clients, _rest(options, clock))
    return replace(report, clients=clients, seconds=time.monotonic() - clock)


def run_http(options: HttpOptions, listener: Listener = nobody) -> Report:
    """Judge an HTTP target against its runtime profile; otherwise as `run`."""
    started, clock = datetime.now(UTC), time.monotonic()
    return judge_opened(open_http_session(options), listener, started, clock)


def judge_opened(session: Opened, listener: Listener, started: datetime, clock: float) -> Report:
    """Judge every row of the plan of an opened target. started, clock: when the run began, as
    `time.monotonic` counts for the time limit.
    """
    options = session.options
    listener(RunStarted(session.declared, session.plan, session.seed))
    limit = options.time_limit
    rest = None if limit is None else max(0.0, limit - (time.monotonic() - clock))
    results, ended_early = _judge_all(session, listener, rest)
    judgements = tuple(
        judgement
        for row in session.plan.rows
        if (judgement := _judgement(row, results, ended_early)) is not None
    )
    failures = tuple(
        sorted(
            (result.failure for result in results.values() if result.failure is not None),
            key=lambda failure: failure.requirement,
        )
    )
    verdict = judge_run(
        session.plan.profiles, judgements, session.declared, interrupted=bool(ended_early)
    )
    comparison = None
    if options.baseline is not None:
        comparison = compare(options.baseline, shown(failures, judgements))
    unchecked = tuple(row.requirement.id for row in session.plan.rows if row.unchecked)
    return Report(
        address=session.address,
        declared=session.declared,
        plan=session.plan,
        judgements=judgements,
        failures=failures,
        unchecked=unchecked,
        verdict=verdict if comparison is None else against_baseline(verdict, comparison),
        comparison=comparison,
        seed=session.seed,
        budget=options.budget.name,
        started=started,
        seconds=time.monotonic() - clock,
        slow_factor=options.slow_factor,
        environment=environment(),
        ended_early=ended_early,
    )


def _rest(options: RunOptions, started: float) -> float | None:
    """Seconds that are left of the time limit."""
    limit = options.time_limit
    return None if limit is None else limit - (time.monotonic() - started)


def _judge_all(
    session: Opened, listener: Listener, limit: float | None
) -> tuple[Mapping[str, CheckResult], str]:
    pool = Pool(session, listener)
    timer = threading.Timer(limit, pool.stop) if limit is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        return _judge_rows(session, pool)
    except KeyboardInterrupt:
        return pool.results, SkipReason.INTERRUPTED
    finally:
        if timer is not None:
            timer.cancel()


def _judge_rows(session: Opened, pool: Pool) -> tuple[Mapping[str, CheckResult], str]:
    """What restarts the target comes last: until then all that was declared stays true, and a
    breach can be replayed. A target that a check has ended shows none again.
    """
    rows = session.plan.to_run
    lasting = [row for row in rows if not row.restarts]
    for share in (lasting, [row for row in rows if row.restarts]):
        pool.run(share, session.options.jobs)
        if session.stop.is_set():
            return pool.results, SkipReason.TIME_LIMIT
        pool.results = settle_bystanders(session, pool.results)
    return pool.results, ""


def _judgement(row: Row, results: Mapping[str, CheckResult], ended_early: str) -> Judgement | None:
    identifier = row.requirement.id
    if identifier in results:
        return results[identifier].judgement
    if row.status is not None:
        return Judgement(identifier, row.status, row.reason, row.detail)
    if row.unchecked:
        return None
    reason = SkipReason(ended_early) if ended_early else None
    return Judgement(identifier, Status.ERROR, reason, "not run: the run ended early")
