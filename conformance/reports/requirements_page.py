"""The reference page of all requirements, generated: what each says, its check and its mutants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.checks.check import Check
from conformance.model.profile import Profile
from conformance.model.registry import Registry
from conformance.model.requirement import VERDICT, Requirement, Subject

INTRO = (
    "Written by `oe-conform requirements --markdown`; the profiles in `profiles/` are the",
    "source. A mutant is a faulty engine that breaks the requirement, and that the check has",
    "to find. *Needs* says what a check depends on besides the engine: a `hook` (the profile",
    "`testing`, or a command of the operator), a `restart` of the engine, an `exclusive` use",
    "of it, or `deterministic` output. *v0.1.0* marks rows that bind engines without",
    "profiles.",
)
HTTP_INTRO = (
    "Written by `oe-conform requirements --http --markdown`; the contracts in `profiles/http/` and",
    "`profiles/workers/` are the source. A mutant is a faulty server that breaks the requirement,",
    "and that the check has to find. Which contracts bind a server, which capabilities it has and",
    "which deviations of it are known stands in its runtime profile (`profiles/runtimes/`).",
)


def requirements_page(
    registry: Registry,
    checks: Mapping[str, Check],
    mutants: Iterable[tuple[str, str]],
    intro: Sequence[str] = (),
) -> str:
    """Markdown. mutants: requirement and name of each. intro: lines of the first paragraph."""
    killed: dict[str, list[str]] = {}
    for requirement, name in mutants:
        killed.setdefault(requirement, []).append(name)
    return "\n".join(_lines(registry, checks, killed, intro or INTRO)) + "\n"


def _lines(
    registry: Registry,
    checks: Mapping[str, Check],
    killed: Mapping[str, Sequence[str]],
    intro: Sequence[str],
) -> Iterator[str]:
    yield "# Requirements"
    yield ""
    yield from intro
    for profile in registry.profiles:
        if profile.requirements:
            yield from _profile(profile, checks, killed)


def _profile(
    profile: Profile, checks: Mapping[str, Check], killed: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    rows = profile.requirements
    yield ""
    yield f"## {profile.title}"
    yield ""
    yield profile.summary
    yield ""
    yield (
        f"{len(rows)} requirements, {sum(row.id in checks for row in rows)} with a check, "
        f"{sum(row.id in killed for row in rows)} with a mutant."
    )
    yield ""
    yield "| id | level | text | needs | v0.1.0 | check | mutants |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield _row(row, checks.get(row.id), killed.get(row.id, ()))


def _row(row: Requirement, check: Check | None, mutants: Sequence[str]) -> str:
    cells = (
        row.id,
        row.level.value,
        row.text.replace("|", "\\|"),
        ", ".join(sorted(need.value for need in row.needs)),
        "yes" if row.legacy else "",
        _kept_by(row, check),
        ", ".join(f"`{name}`" for name in mutants),
    )
    return "| " + " | ".join(cells) + " |"


def _kept_by(row: Requirement, check: Check | None) -> str:
    if row.subject is Subject.REPORT:
        return f"`{VERDICT}`"
    return "" if check is None else f"`{check.name}`"
