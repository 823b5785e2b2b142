"""`oe-conform requirements`: the table of requirements, checks and mutants, for other tools."""

from __future__ import annotations

import json

import rich_click as click

from conformance.checks import all_checks
from conformance.model.registry import default_registry
from conformance.mutants.table import MUTANTS


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def requirements(*, as_json: bool) -> None:
    """Print every requirement with its check and mutants, and one line of counts at the end."""
    registry, checks = default_registry(), all_checks()
    by_requirement: dict[str, list[str]] = {}
    for mutant in MUTANTS:
        by_requirement.setdefault(mutant.requirement, []).append(mutant.name)
    rows = registry.requirements()
    for row in rows:
        check = checks.get(row.id)
        entry: dict[str, object] = {
            "id": row.id,
            "level": row.level.value,
            "profile": row.profile,
            "check": None if check is None else check.name,
            "mutants": by_requirement.get(row.id, []),
        }
        click.echo(json.dumps(entry) if as_json else _line(entry))
    checked = sum(row.id in checks for row in rows)
    mutated = sum(row.id in by_requirement for row in rows)
    click.echo(
        f"{len(rows)} requirements, {checked} with a check, {mutated} with a mutant, "
        f"{len(MUTANTS)} mutants"
    )


def _line(entry: dict[str, object]) -> str:
    mutants = entry["mutants"]
    names = ", ".join(mutants) if isinstance(mutants, list) and mutants else "-"
    return f"{entry['id']:<22} {entry['level']:<6} {entry['check'] or '-'!s:<42} {names}"
