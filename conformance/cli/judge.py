"""`oe-conform judge PATH`: hold recorded traffic against the laws, without any target."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from conformance.cli.recorder import CALLS, TARGET
from conformance.laws import LAWS
from conformance.laws import judge as judge_transcript
from conformance.laws.law import Finding
from conformance.model.registry import default_registry
from conformance.model.requirement import Level
from conformance.reports.ranges import ranges
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.declared_json import read_declared
from conformance.wire.transcript_json import read_transcripts


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--legacy", is_flag=True, help="The engine speaks only the v0.1.0 services.")
def judge(path: Path, *, legacy: bool) -> int:
    """Judge recorded calls: a directory that `run --record` wrote, or a file of JSON Lines
    (docs/reference/transcripts.md has the format).

    Exit codes: 0 every law that judged anything holds, 1 one is broken, 2 nothing was judged.
    """
    declared, calls = _recording(path, legacy=legacy)
    registry = default_registry()
    judged: set[str] = set()
    broken: set[str] = set()
    count = redacted = 0
    for number, transcript in read_transcripts(calls):
        count += 1
        redacted += transcript.redacted
        for requirement, ruling in judge_transcript(transcript, declared).items():
            row = registry.requirement(requirement)
            if ruling is None or (declared.legacy and not row.legacy):
                continue
            judged.add(requirement)
            if isinstance(ruling, Finding):
                must = row.level is Level.MUST
                broken.update({requirement} if must else ())
                at = "" if ruling.event is None else f", event {ruling.event}"
                click.echo(f"{'FAIL' if must else 'WARN'} {requirement} line {number}{at}")
                click.echo(f"     expected {ruling.expected}")
                click.echo(f"     got      {ruling.actual}")
    if redacted:
        readers = tuple(sorted(name for name, law in LAWS.items() if law.reads_content))
        click.echo(f"{redacted} calls are redacted and were not judged by {ranges(readers)}")
    click.echo(
        f"{count} calls; {len(judged)} requirements judged, {len(broken)} broken"
        + (": " + ", ".join(sorted(broken)) if broken else "")
    )
    if not judged:
        click.echo("nothing was judged: no call is one that a law speaks about", err=True)
        return 2
    return 1 if broken else 0


def _recording(path: Path, *, legacy: bool) -> tuple[Declared, Path]:
    """What the engine declared, as far as the recording tells, and the file of its calls."""
    if path.is_dir():
        return read_declared(path / TARGET), path / CALLS
    kind = TargetClass.LEGACY if legacy else TargetClass.PROFILE_AWARE
    return Declared(kind, "v0.1.0"), path
