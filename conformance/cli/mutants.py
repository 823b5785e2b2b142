"""`oe-conform mutants`: prove the checks against faulty engines and print the kill rate."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import rich_click as click

from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError
from conformance.model.client import client_set, client_sets
from conformance.mutants.http.matrix import HttpTrial, plain_broken, run_http_matrix
from conformance.mutants.http.native.matrix import native_broken, try_native_mutant
from conformance.mutants.http.native.mutants import NATIVE_MUTANTS
from conformance.mutants.http.table import http_mutants
from conformance.mutants.matrix import Trial, run_matrix
from conformance.mutants.needs import CLIENT_MUTANTS, run_needs
from conformance.mutants.table import MUTANTS, choose, select
from conformance.mutants.worker.matrix import (
    WORKER_MUTANTS,
    WorkerTrial,
    plain_worker_broken,
    try_worker,
)


@click.command()
@target_options
@click.option("--id", "ids", multiple=True, help="Only mutants of this requirement id or glob.")
@click.option("--name", "names", multiple=True, help="Only this mutant; repeatable.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option(
    "--own-only",
    is_flag=True,
    help="Run each mutant's own check only: quicker, and says nothing about unrelated ones.",
)
@click.option(
    "--client",
    metavar="NAME",
    help=f"Mutants of what this client needs instead: {', '.join(client_sets())}.",
)
@click.option(
    "--http",
    is_flag=True,
    help="Faulty HTTP servers instead: each breaks one rule of the HTTP contracts.",
)
@click.option(
    "--workers",
    is_flag=True,
    help="Faulty workers instead: each breaks one rule of the contract of workers.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Only so many of them, chosen by the seed: the full matrix takes long.",
)
@click.option("--seed", type=int, default=0, show_default=True)
def mutants(
    *,
    where: TargetOptions,
    ids: tuple[str, ...],
    names: tuple[str, ...],
    jobs: int,
    own_only: bool,
    client: str | None,
    http: bool,
    workers: bool,
    sample: int | None,
    seed: int,
) -> int:
    """Put a proxy that breaks one rule at a time before an engine, and see which checks notice.

    Exit codes: 0 every mutant is killed by its own check and by no unrelated one, 1 not, 2 the
    engine without a mutant does not pass, so nothing is proven.
    """
    if (http or workers) and (where.target is not None or client is not None):
        name = "--http" if http else "--workers"
        raise ConfigError(f"{name} brings its own servers", expected="no --target and no --client")
    if http and workers:
        raise ConfigError("--http and --workers together", expected="one of them")
    if where.tls or where.ca or where.control:
        raise ConfigError("mutants stand before one plaintext listener", expected="--target alone")
    if client is not None:
        wanted = client_set(client)
        with where.open() as target:
            found = run_needs(target, wanted, _show)
        return _summary(
            found.plain_broken, found.trials, sum(map(len, CLIENT_MUTANTS[wanted.name]))
        )
    if http:
        return _run_http(ids, names, sample, seed, own_only=own_only)
    if workers:
        return _run_workers(ids, names, own_only=own_only)
    chosen = select(ids, names)
    if sample is not None and sample < len(chosen):
        chosen = tuple(random.Random(seed).sample(chosen, sample))  # noqa: S311 - not secret
        click.echo(f"{sample} mutants, chosen by seed {seed}")
    with where.open() as target:
        matrix = run_matrix(target, chosen, jobs=jobs, own_only=own_only, seed=seed, listener=_show)
    return _summary(matrix.plain_broken, matrix.trials, len(MUTANTS))


def _run_http(
    ids: tuple[str, ...],
    names: tuple[str, ...],
    sample: int | None,
    seed: int,
    *,
    own_only: bool,
) -> int:
    every = (*http_mutants(), *NATIVE_MUTANTS)
    chosen = choose(every, ids, names)
    if sample is not None and sample < len(chosen):
        chosen = tuple(random.Random(seed).sample(chosen, sample))  # noqa: S311 - not secret
        click.echo(f"{sample} mutants, chosen by seed {seed}")
    native = [mutant for mutant in chosen if mutant in NATIVE_MUTANTS]
    plain = [mutant for mutant in chosen if mutant not in NATIVE_MUTANTS]
    broken = {**plain_broken(), **plain_broken(scripted=False)} if plain else {}
    broken |= native_broken() if native else {}
    if broken:
        return _summary(broken, (), len(every))
    trials = list(run_http_matrix(plain, _show, own_only=own_only))
    for mutant in native:
        trials.append(try_native_mutant(mutant, own_only=own_only))
        _show(trials[-1])
    return _summary(broken, trials, len(every))


def _run_workers(ids: tuple[str, ...], names: tuple[str, ...], *, own_only: bool) -> int:
    chosen = choose(WORKER_MUTANTS, ids, names)
    broken = plain_worker_broken()
    trials: list[WorkerTrial] = []
    for mutant in () if broken else chosen:
        trials.append(try_worker(mutant, own_only=own_only))
        _show(trials[-1])
    return _summary(broken, trials, len(WORKER_MUTANTS))


def _show(trial: Trial | HttpTrial | WorkerTrial) -> None:
    state = "killed" if trial.killed else "SURVIVED"
    click.echo(f"{state:<9} {trial.mutant.requirement:<22} {trial.mutant.name}")
    if not trial.killed:
        click.echo(f"          its check said {trial.own_status}: {trial.own_detail}")
    for requirement, detail in trial.collateral.items():
        click.echo(f"          also broke {requirement}: {detail}")


def _summary(
    plain: Mapping[str, str],
    trials: Sequence[Trial] | Sequence[HttpTrial] | Sequence[WorkerTrial],
    known: int,
) -> int:
    if plain:
        for requirement, detail in plain.items():
            click.echo(f"BROKEN without a mutant: {requirement}: {detail}")
        click.echo("the engine without a mutant does not pass; nothing is proven")
        return 2
    count = len(trials)
    killed = sum(trial.killed for trial in trials)
    clean = sum(trial.killed and not trial.collateral for trial in trials)
    rows = len({trial.mutant.requirement for trial in trials})
    click.echo(
        f"kill rate {killed}/{count} ({100 * killed / count:.0f} %) over {rows} requirements, "
        f"{clean} by their own check alone; {known} mutants known"
    )
    return 0 if clean == count else 1
