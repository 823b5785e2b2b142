"""`oe-conform requirements`: the table of requirements, checks and mutants, for other tools."""

from __future__ import annotations

import json

import rich_click as click

from conformance.cli.catalogue import catalogue
from conformance.errors import ConfigError
from conformance.model.requirement import VERDICT, Subject
from conformance.reports.requirements_page import HTTP_INTRO, INTRO, requirements_page


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option(
    "--markdown",
    is_flag=True,
    help="The page docs/reference/requirements.md; with --http, http-requirements.md.",
)
@click.option("--http", is_flag=True, help="The rows of the HTTP contracts instead.")
def requirements(*, as_json: bool, markdown: bool, http: bool) -> None:
    """Print every requirement with its check and mutants, and one line of counts at the end."""
    if as_json and markdown:
        raise ConfigError("--json and --markdown together", expected="one of them")
    side = catalogue(http=http)
    registry, checks = side.registry, side.checks
    killers = [(mutant.requirement, mutant.name) for mutant in side.killers]
    if markdown:
        intro = HTTP_INTRO if http else INTRO
        click.echo(requirements_page(registry, checks, killers, intro), nl=False)
        return
    by_requirement: dict[str, list[str]] = {}
    for requirement, name in killers:
        by_requirement.setdefault(requirement, []).append(name)
    rows = registry.requirements()
    for row in rows:
        check = checks.get(row.id)
        entry: dict[str, object] = {
            "id": row.id,
            "level": row.level.value,
            "profile": row.profile,
            "check": VERDICT if row.subject is Subject.REPORT else check and check.name,
            "mutants": by_requirement.get(row.id, []),
        }
        click.echo(json.dumps(entry) if as_json else _line(entry))
    checked = sum(row.id in checks for row in rows)
    mutated = sum(row.id in by_requirement for row in rows)
    click.echo(
        f"{len(rows)} requirements, {checked} with a check, {mutated} with a mutant, "
        f"{len(killers)} mutants"
    )


def _line(entry: dict[str, object]) -> str:
    mutants = entry["mutants"]
    names = ", ".join(mutants) if isinstance(mutants, list) and mutants else "-"
    return f"{entry['id']:<22} {entry['level']:<6} {entry['check'] or '-'!s:<42} {names}"
