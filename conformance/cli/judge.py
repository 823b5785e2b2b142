"""`oe-conform judge FILE`: hold recorded traffic against the laws, without any target."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from conformance.laws import judge as judge_transcript
from conformance.laws.law import Finding
from conformance.model.registry import default_registry
from conformance.model.requirement import Level
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.transcript_json import read_transcripts


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--legacy", is_flag=True, help="The engine speaks only the v0.1.0 services.")
def judge(file: Path, *, legacy: bool) -> int:
    """Judge recorded calls in FILE (JSON Lines; docs/reference/transcripts.md has the format).

    Exit codes: 0 every law that judged anything holds, 1 one is broken, 2 nothing was judged.
    """
    kind = TargetClass.LEGACY if legacy else TargetClass.PROFILE_AWARE
    declared = Declared(kind, "v0.1.0")
    registry = default_registry()
    judged: set[str] = set()
    broken: set[str] = set()
    count = 0
    for number, transcript in read_transcripts(file):
        count += 1
        for requirement, ruling in judge_transcript(transcript, declared).items():
            row = registry.requirement(requirement)
            if ruling is None or (legacy and not row.legacy):
                continue
            judged.add(requirement)
            if isinstance(ruling, Finding):
                must = row.level is Level.MUST
                broken.update({requirement} if must else ())
                at = "" if ruling.event is None else f", event {ruling.event}"
                click.echo(f"{'FAIL' if must else 'WARN'} {requirement} line {number}{at}")
                click.echo(f"     expected {ruling.expected}")
                click.echo(f"     got      {ruling.actual}")
    click.echo(
        f"{count} calls; {len(judged)} requirements judged, {len(broken)} broken"
        + (": " + ", ".join(sorted(broken)) if broken else "")
    )
    if not judged:
        click.echo("nothing was judged: the file holds no call that a law speaks about", err=True)
        return 2
    return 1 if broken else 0
