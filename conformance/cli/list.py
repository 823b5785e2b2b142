"""`oe-conform list`: every requirement, one line each, with its check."""

from __future__ import annotations

from collections import Counter

import rich_click as click

from conformance.cli.catalogue import catalogue
from conformance.model.requirement import VERDICT, Subject
from conformance.runner.selection import Selection, validated
from conformance.runtimes.profile import State
from conformance.runtimes.registry import PREFIX, runtime_profiles


@click.command("list")
@click.option("--profile", "profiles", multiple=True, help="Only this profile; repeatable.")
@click.option("--id", "ids", multiple=True, help="Only this requirement id or glob; repeatable.")
@click.option("--http", is_flag=True, help="The rows of the HTTP contracts instead.")
@click.option("--runtimes", is_flag=True, help="The runtime profiles for HTTP targets instead.")
def list_rows(
    *, profiles: tuple[str, ...], ids: tuple[str, ...], http: bool, runtimes: bool
) -> None:
    """List requirements: id, level, check, first words of the text."""
    if runtimes:
        _list_runtimes()
        return
    side = catalogue(http=http)
    selection = validated(Selection(profiles, ids), side.registry)
    checks = side.checks
    for row in side.registry.requirements():
        if selection.wants(row.profile) and selection.includes(row):
            check = checks.get(row.id)
            kept = VERDICT if row.subject is Subject.REPORT else "unchecked"
            name = check.name if check is not None else kept
            click.echo(f"{row.id:<22} {row.level.value:<6} {name:<42} {_short(row.text)}")


def _list_runtimes() -> None:
    for profile in runtime_profiles().values():
        states = Counter(each.state.value for each in profile.capabilities.values())
        counted = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
        click.echo(
            f"{PREFIX + profile.id:<36} {profile.tier:<20} {counted}; "
            f"{len(profile.deviations)} known deviations; {', '.join(sorted(profile.contracts))}"
        )


def _short(text: str, width: int = 70) -> str:
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + " …"
