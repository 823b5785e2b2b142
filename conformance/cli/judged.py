"""A whole `oe-conform run`, from the words of the user to the exit code."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.checks import all_checks
from conformance.cli.http_target import HttpWords, http_profile, http_target
from conformance.cli.recorder import Recorder
from conformance.cli.run_options import OWN_JOBS, RunWords
from conformance.cli.target_options import TargetOptions
from conformance.model.client import client_set
from conformance.model.registry import Registry, default_registry
from conformance.model.requirement import Level
from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT
from conformance.reports import write_report
from conformance.reports.terminal import Progress, print_report
from conformance.runner.baseline import Baseline, load_baseline, shown
from conformance.runner.baseline_file import update_baseline
from conformance.runner.budget import BUDGETS
from conformance.runner.clients import all_met
from conformance.runner.events import RunEvent
from conformance.runner.http_session import HttpOptions
from conformance.runner.report import Report
from conformance.runner.run import run as run_suite
from conformance.runner.run import run_http
from conformance.runner.search import prepare
from conformance.runner.selection import Selection, validated
from conformance.runner.session import Options
from conformance.runner.store import save
from conformance.runtimes.contracts import http_registry
from conformance.wire.target import Target


@dataclass(frozen=True, slots=True)
class Judged:
    """A run: its report, the target (None over HTTP) and the baseline that it was held against."""

    report: Report
    target: Target | None
    baseline: Baseline | None


def over_http(words: RunWords, http: HttpWords, where: TargetOptions) -> Judged:
    """Judge an HTTP target. Raises ConfigError and UnreachableError."""
    registry = http_registry()
    subject = http_profile(words.profiles, where.config)
    baseline = _baseline(words, registry)
    options = HttpOptions(
        target=http_target(where),
        profile=subject.profile,
        model=words.model,
        scripted=http.scripted,
        conditions=http.conditions,
        allowed=http.allowed,
        context_tokens=http.context_tokens,
        worker=subject.worker,
        stream_errors=subject.stream_errors,
        budget=BUDGETS[words.budget],
        seed=words.seed,
        jobs=words.jobs or 1,
        selection=_selection(words, (), registry),
        ready_timeout=words.ready_timeout,
        slow_factor=words.slow_factor,
        time_limit=words.time_limit,
        baseline=baseline,
    )
    with Progress() as progress:
        return Judged(run_http(options, progress), None, baseline)


def over_grpc(words: RunWords, ready: Callable[[], Target], *, own: bool) -> Judged:
    """Judge the gRPC target that `ready` gives; own: the run has started it for itself. Raises
    ConfigError and UnreachableError.
    """
    # All that needs no target comes first: one that was started has not come up yet.
    registry = default_registry()
    selection = _selection(words, words.profiles, registry)
    needs = tuple(client_set(name) for name in dict.fromkeys(words.clients))
    baseline = _baseline(words, registry)
    recorder = Recorder(words.record, payloads=words.include_payloads)
    all_checks()
    prepare()
    gc.collect()
    target = ready()

    def listener(event: RunEvent) -> None:
        progress(event)
        recorder.event(event)

    options = Options(
        target=target,
        model=words.model,
        dialect=words.dialect,
        budget=BUDGETS[words.budget],
        seed=words.seed,
        jobs=words.jobs or (OWN_JOBS if own else 1),
        selection=selection,
        ready_timeout=words.ready_timeout,
        slow_factor=words.slow_factor,
        time_limit=words.time_limit,
        recorder=recorder.call,
        baseline=baseline,
        clients=needs,
    )
    with Progress() as progress, recorder.open(), _kept():
        return Judged(run_suite(options, listener), target, baseline)


@contextmanager
def _kept() -> Iterator[None]:
    """What was imported is not looked through for garbage, which Hypothesis asks for in every new
    thread: 0.1 s each time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def told(done: Judged, words: RunWords, outputs: tuple[tuple[str, Path], ...]) -> int:
    """Keep the failures, write and print what was found; the exit code."""
    report = done.report
    for failure in report.failures:
        save(failure, words.failures)
    if words.update and words.baseline_file is not None:
        seen = shown(report.failures, report.judgements)
        update_baseline(words.baseline_file, done.baseline, seen)
    print_report(report, done.target, payloads=words.include_payloads)
    for kind, path in outputs:
        write_report(report, kind, path, include_payloads=words.include_payloads)
    # An updated baseline says what was shown, so the run is as it says, unless nothing was judged.
    code = report.verdict.exit_code
    code = CONFORMANT if words.update and code == NOT_CONFORMANT else code
    unmet = words.require_client and not all_met(report.clients)
    return NOT_CONFORMANT if unmet and code == CONFORMANT else code


def _selection(words: RunWords, profiles: tuple[str, ...], registry: Registry) -> Selection:
    chosen = Selection(profiles, words.ids, words.exclude, Level(words.level))
    return validated(chosen, registry)


def _baseline(words: RunWords, registry: Registry) -> Baseline | None:
    path = words.baseline_file
    # The first update makes the file.
    if path is None or (words.update and not path.exists()):
        return None
    return load_baseline(path, registry)
