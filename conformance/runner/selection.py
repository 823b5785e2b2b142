"""Which requirements the operator wants judged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from conformance.errors import ConfigError, unknown_name
from conformance.model.registry import Registry
from conformance.model.requirement import Level, Requirement


@dataclass(frozen=True, slots=True)
class Selection:
    """profiles: names; empty = every advertised one. ids: exact ids or globs; empty = all.
    excluded: ids or globs taken out again. level: the weakest level that is run.
    """

    profiles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    level: Level = Level.MAY

    def includes(self, requirement: Requirement) -> bool:
        """Whether the requirement is to be run, as far as the operator is concerned."""
        order = list(Level)
        return (
            order.index(requirement.level) <= order.index(self.level)
            and (not self.ids or _matches(requirement.id, self.ids))
            and not _matches(requirement.id, self.excluded)
        )

    def wants(self, profile: str) -> bool:
        """Whether the profile is to be judged at all."""
        return not self.profiles or profile in self.profiles


def validated(selection: Selection, registry: Registry) -> Selection:
    """The selection itself. Raises ConfigError for a name or pattern that matches nothing: a
    selection with a typing error must not turn into a run that judged nothing and looks fine.
    """
    names = {profile.name for profile in registry.profiles}
    for name in selection.profiles:
        if name not in names:
            raise unknown_name("profile", name, names)
    ids = [requirement.id for requirement in registry.requirements()]
    for pattern in (*selection.ids, *selection.excluded):
        if not any(fnmatchcase(identifier, pattern) for identifier in ids):
            if any(sign in pattern for sign in "*?["):
                raise ConfigError(
                    f"pattern {pattern!r} matches no requirement id",
                    expected="a glob such as OE-CORE-GEN-*",
                )
            raise unknown_name("requirement id", pattern, ids)
    return selection


def _matches(identifier: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(identifier, pattern) for pattern in patterns)
