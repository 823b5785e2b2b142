"""`oe-conform explain ID`: what a requirement says, how it is checked, how to mend a failure."""

from __future__ import annotations

import textwrap

import rich_click as click

from conformance.checks import client_checks
from conformance.checks.check import Check
from conformance.cli.catalogue import catalogue, is_http_id
from conformance.model.client import ClientSet, client_sets
from conformance.model.requirement import VERDICT, Requirement, Subject
from conformance.mutants.needs import CLIENT_MUTANTS


@click.command()
@click.argument("requirement")
def explain(requirement: str) -> None:
    """Explain the requirement with this id: text, source, check, mutants, how to fix."""
    client = _client_of(requirement)
    if client is not None:
        _explain_need(client, requirement)
        return
    side = catalogue(http=is_http_id(requirement))
    row = side.registry.requirement(requirement)
    check = side.checks.get(row.id)
    mutants = [mutant for mutant in side.killers if mutant.requirement == row.id]
    profile = side.registry.profile(row.profile)
    click.echo(f"{row.id}  {row.level.value}  {profile.title}\n")
    click.echo(_wrapped(row.text) + "\n")
    sources = ", ".join(side.source(letter) for letter in row.sources)
    click.echo(f"Source:   {sources}")
    click.echo(f"Applies:  {row.applies or 'always'}")
    for line in _conditions(row):
        click.echo(line)
    click.echo(f"Check:    {_check_name(row, check)}")
    for mutant in mutants:
        click.echo(f"Mutant:   {mutant.name}: {mutant.story}")
    if not mutants:
        click.echo("Mutant:   none")
    if check is not None:
        click.echo("\nHow to fix\n" + _wrapped(check.advice))


def _check_name(row: Requirement, check: Check | None) -> str:
    if row.subject is Subject.REPORT:
        return f"{VERDICT}: it binds what a report may claim; no engine can break it"
    return check.name if check else "none yet: reported as unchecked"


def _client_of(requirement: str) -> ClientSet | None:
    """The client whose need this is, None for a requirement of a profile."""
    sets = client_sets().values()
    return next((c for c in sets if any(need.id == requirement for need in c.needs)), None)


def _explain_need(client: ClientSet, identifier: str) -> None:
    need = next(need for need in client.needs if need.id == identifier)
    check = client_checks(client.name)[need.id]
    mutants = [mutant for group in CLIENT_MUTANTS[client.name] for mutant in group]
    click.echo(f"{need.id}  advisory  client {client.title}\n")
    click.echo(_wrapped(need.text) + "\n")
    click.echo(f"Otherwise: {client.otherwise[need.id].value}")
    click.echo(f"Applies:   {need.applies or 'always'}")
    click.echo(f"Check:     {check.name}")
    for mutant in mutants:
        if mutant.requirement == need.id:
            click.echo(f"Mutant:    {mutant.name}: {mutant.story}")
    click.echo("\nHow to fix\n" + _wrapped(check.advice))


def _conditions(row: Requirement) -> list[str]:
    lines = []
    if row.capability:
        lines.append(f"About:    the capability {row.capability} of a runtime profile")
    if row.needs:
        lines.append(f"Needs:    {', '.join(sorted(need.value for need in row.needs))}")
    if row.legacy:
        tolerated = f"; only warned about: {row.tolerates}" if row.tolerates else ""
        lines.append(f"Legacy:   binds v0.1.0 engines too{tolerated}")
    return lines


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=88, initial_indent="  ", subsequent_indent="  ")
