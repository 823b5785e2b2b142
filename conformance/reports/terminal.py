"""What a person sees: progress while a run goes on, then failures with evidence and the claim."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from conformance.model.registry import default_registry
from conformance.model.status import Status
from conformance.reports.evidence import evidence
from conformance.reports.http_call import http_evidence
from conformance.reports.ranges import ranges
from conformance.reports.titles import title
from conformance.runner.clients import ClientResult, Result
from conformance.runner.events import CheckFinished, RunEvent, RunStarted
from conformance.runner.opened import AnyDeclared
from conformance.runner.plan import Plan
from conformance.runner.report import Report
from conformance.runner.result import Failure
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.identity import BUILD
from conformance.wire.routes import routes_of
from conformance.wire.target import Target

_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.FLAKY: "bold magenta",
    Status.ERROR: "bold yellow",
    Status.WARN: "yellow",
}
# Rows that a reader must see whatever the profile's claim is.
_NOTABLE = (Status.FAIL, Status.FLAKY, Status.ERROR, Status.WARN, Status.BLOCKED)


class Progress:
    """A listener of a run: a bar on a terminal, one line for each check elsewhere.

    rich honours NO_COLOR and TERM=dumb; everything goes to stderr, so that stdout is the report.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: RunEvent) -> None:
        match event:
            case RunStarted(declared, plan, seed):
                self._console.print(Text(_headline(declared)))
                self._console.print(Text(f"{_planned(declared, plan)}; seed {seed}"))
                if self._console.is_terminal:
                    self._start_bar(len(plan.to_run))
            case CheckFinished(result) if self._bar is not None:
                self._bar.advance(self._bar.task_ids[0])
            case CheckFinished(result):
                judgement = result.judgement
                line = f"{judgement.status.value:<14} {judgement.requirement}"
                self._console.print(Text(f"{line}  {judgement.detail}".rstrip()))
            case _:
                pass

    def _start_bar(self, total: int) -> None:
        columns = (TextColumn("checks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Bar(*columns, console=self._console, transient=True)
        self._bar.add_task("checks", total=total)
        self._bar.start()


def print_report(report: Report, target: Target | None, *, payloads: bool = False) -> None:
    """Print failures with their evidence, a line for each notable row, counts and the claim.

    target: where a gRPC target is; an HTTP one is known by the report's address.
    """
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    for failure in report.failures:
        if report.known(failure.requirement) is not None:
            continue
        for line in _evidence(report, failure, target, payloads=payloads):
            console.print(Text(line))
        console.print()
    for status in _NOTABLE:
        for judgement in report.judgements:
            known = report.known(judgement.requirement)
            if judgement.status is status and known is not None:
                console.print(
                    Text(f"{'known':<8} {judgement.requirement:<22} {known.reason} ({known.issue})")
                )
            elif judgement.status is status:
                style = _STYLES.get(status, "")
                label = Text(f"{status.value:<8} {judgement.requirement:<22} ", style=style)
                console.print(label + Text(judgement.detail))
    for verdict in report.verdict.profiles:
        counts = ", ".join(f"{number} {status.value}" for status, number in verdict.counts.items())
        console.print(
            Text(
                f"{title(report.declared, verdict.profile, verdict.version)}: "
                f"{verdict.executed} of {verdict.expected} executed; {counts}; "
                f"{len(verdict.unchecked)} unchecked"
            )
        )
    for problem in report.comparison.problems if report.comparison is not None else ():
        what = report.comparison.name if report.comparison is not None else ""
        console.print(Text(f"{what} ", style="bold red") + Text(problem))
    if report.unchecked:
        console.print(Text("unchecked (no check exists yet): " + ranges(report.unchecked)))
    if report.ended_early:
        console.print(Text(f"the run ended early: {report.ended_early}; this report is partial"))
    for client in report.clients:
        _print_client(console, client)
    requests = sum(judgement.requests for judgement in report.judgements)
    tokens = sum(judgement.tokens for judgement in report.judgements)
    console.print(
        Text(
            f"{requests} requests, {tokens} tokens, {report.seconds:.1f} s, "
            f"seed {report.seed}, budget {report.budget}"
        )
    )
    console.print(Text(report.verdict.text, style="bold"))


def _evidence(
    report: Report, failure: Failure, target: Target | None, *, payloads: bool
) -> Iterator[str]:
    declared = report.declared
    if isinstance(declared, HttpDeclared) or target is None:
        profile = declared.profile_name if isinstance(declared, HttpDeclared) else ""
        address = report.address
        return http_evidence(failure, http_registry(), address, profile, payloads=payloads)
    return evidence(
        failure,
        default_registry(),
        replace(target, single_service=declared.single_service),
        routes_of(declared, target),
        payloads=payloads,
        dialect=declared.dialect,
    )


def _print_client(console: Console, client: ClientResult) -> None:
    """One line for each need that is not met, and the counts."""
    for each in client.needs:
        if each.result is Result.NOT_MET:
            label = Text(f"not met  {each.need.id} ({each.otherwise.value}) ", style="yellow")
            console.print(label + Text(f"expected {each.expected}; got {each.detail}"))
    console.print(Text(f"{client.text} (advisory)"))


def _headline(declared: AnyDeclared) -> str:
    if isinstance(declared, HttpDeclared):
        runtime = declared.runtime
        build = declared.observed.get(BUILD, "")
        known = f"reports build {build}" if build else "reports no build"
        model = f"{declared.model_name or 'none'}{' (scripted)' if declared.scripted else ''}"
        around = runtime.orchestration
        behind = "" if around is None else f", said to be behind {around.text}"
        return (
            f"{runtime.title}: {declared.target_class.value}, profile {runtime.id} "
            f"(sha256 {runtime.digest[:12]}), {known}, model {model}{behind}"
        )
    engine = declared.engine
    name = f"{getattr(engine, 'engine_name', '')} {getattr(engine, 'engine_version', '')}".strip()
    advertised = ", ".join(sorted(declared.profiles)) or "none"
    return (
        f"{name or 'unnamed engine'}: {declared.target_class.value}, role {declared.role}, "
        f"model {declared.model_name or 'none'}, profiles: {advertised}"
    )


def _planned(declared: AnyDeclared, plan: Plan) -> str:
    rows = [(profile, plan.of(profile)) for profile in plan.profiles]
    parts = [
        f"{title(declared, profile.name, profile.version)} "
        f"{sum(row.check is not None for row in of)} of {len(of)}"
        for profile, of in rows
    ]
    advertised = {profile.name for profile in plan.profiles}
    others = dict.fromkeys(
        row.requirement.profile for row in plan.rows if row.requirement.profile not in advertised
    )
    text = f"will run {len(plan.to_run)} checks: {', '.join(parts) or 'no profile'}"
    return text + (f"; not judged: {', '.join(others)}" if others else "")
