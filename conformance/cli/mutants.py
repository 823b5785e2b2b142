"""`oe-conform mutants`: prove the checks against faulty engines and print the kill rate."""

from __future__ import annotations

import random

import rich_click as click

from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError
from conformance.model.client import client_set, client_sets
from conformance.mutants.matrix import Matrix, Trial, run_matrix
from conformance.mutants.needs import CLIENT_MUTANTS, run_needs
from conformance.mutants.table import MUTANTS, select


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
    sample: int | None,
    seed: int,
) -> int:
    """Put a proxy that breaks one rule at a time before an engine, and see which checks notice.

    Exit codes: 0 every mutant is killed by its own check and by no unrelated one, 1 not, 2 the
    engine without a mutant does not pass, so nothing is proven.
    """
    if where.tls or where.ca or where.control:
        raise ConfigError("mutants stand before one plaintext listener", expected="--target alone")
    if client is not None:
        wanted = client_set(client)
        with where.open() as target:
            found = run_needs(target, wanted, _show)
        return _summary(found, sum(map(len, CLIENT_MUTANTS[wanted.name])))
    chosen = select(ids, names)
    if sample is not None and sample < len(chosen):
        chosen = tuple(random.Random(seed).sample(chosen, sample))  # noqa: S311 - not secret
        click.echo(f"{sample} mutants, chosen by seed {seed}")
    with where.open() as target:
        matrix = run_matrix(target, chosen, jobs=jobs, own_only=own_only, seed=seed, listener=_show)
    return _summary(matrix, len(MUTANTS))


def _show(trial: Trial) -> None:
    state = "killed" if trial.killed else "SURVIVED"
    click.echo(f"{state:<9} {trial.mutant.requirement:<22} {trial.mutant.name}")
    if not trial.killed:
        click.echo(f"          its check said {trial.own_status}: {trial.own_detail}")
    for requirement, detail in trial.collateral.items():
        click.echo(f"          also broke {requirement}: {detail}")


def _summary(matrix: Matrix, known: int) -> int:
    if matrix.plain_broken:
        for requirement, detail in matrix.plain_broken.items():
            click.echo(f"BROKEN without a mutant: {requirement}: {detail}")
        click.echo("the engine without a mutant does not pass; nothing is proven")
        return 2
    count = len(matrix.trials)
    killed = sum(trial.killed for trial in matrix.trials)
    clean = sum(trial.killed and not trial.collateral for trial in matrix.trials)
    rows = len({trial.mutant.requirement for trial in matrix.trials})
    click.echo(
        f"kill rate {killed}/{count} ({100 * killed / count:.0f} %) over {rows} requirements, "
        f"{clean} by their own check alone; {known} mutants known"
    )
    return 0 if clean == count else 1
