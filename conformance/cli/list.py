"""`oe-conform list`: every requirement, one line each, with its check."""

from __future__ import annotations

import rich_click as click

from conformance.checks import all_checks
from conformance.model.registry import default_registry
from conformance.model.requirement import VERDICT, Subject
from conformance.runner.selection import Selection, validated


@click.command("list")
@click.option("--profile", "profiles", multiple=True, help="Only this profile; repeatable.")
@click.option("--id", "ids", multiple=True, help="Only this requirement id or glob; repeatable.")
def list_rows(*, profiles: tuple[str, ...], ids: tuple[str, ...]) -> None:
    """List requirements: id, level, check, first words of the text."""
    registry = default_registry()
    selection = validated(Selection(profiles, ids), registry)
    checks = all_checks()
    for row in registry.requirements():
        if selection.wants(row.profile) and selection.includes(row):
            check = checks.get(row.id)
            kept = VERDICT if row.subject is Subject.REPORT else "unchecked"
            name = check.name if check is not None else kept
            click.echo(f"{row.id:<22} {row.level.value:<6} {name:<42} {_short(row.text)}")


def _short(text: str, width: int = 70) -> str:
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + " …"
