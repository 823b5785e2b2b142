"""Every mutant of the suite, and the choice among them by requirement or name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from conformance.errors import ConfigError, unknown_name
from conformance.mutants import (
    abort,
    abort_all,
    admin,
    beside,
    cancel,
    capabilities,
    changes,
    compatibility,
    discovery,
    downstream,
    errors,
    generate,
    guides,
    health,
    health_states,
    histories,
    holding,
    load_info,
    logprobs,
    metadata,
    metadata_elsewhere,
    options,
    pressure,
    repeating,
    request_ids,
    sampling,
    scopes,
    stopping,
    stream,
    testing,
    trace,
    usage,
    watch_load,
    watch_load_pace,
    watch_load_settings,
)
from conformance.mutants.mutant import Mutant


def collect(mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """The mutants by requirement, then name. Raises ImportError for two of one name."""
    ordered = sorted(mutants, key=lambda mutant: (mutant.requirement, mutant.name))
    names = [mutant.name for mutant in ordered]
    for name in names:
        if names.count(name) > 1:
            raise ImportError(f"two mutants are named {name}")
    return tuple(ordered)


MUTANTS: tuple[Mutant, ...] = collect(
    (
        *abort.MUTANTS,
        *abort_all.MUTANTS,
        *admin.MUTANTS,
        *beside.MUTANTS,
        *cancel.MUTANTS,
        *capabilities.MUTANTS,
        *changes.MUTANTS,
        *compatibility.MUTANTS,
        *discovery.MUTANTS,
        *downstream.MUTANTS,
        *errors.MUTANTS,
        *generate.MUTANTS,
        *guides.MUTANTS,
        *health.MUTANTS,
        *holding.MUTANTS,
        *health_states.MUTANTS,
        *histories.MUTANTS,
        *load_info.MUTANTS,
        *logprobs.MUTANTS,
        *metadata.MUTANTS,
        *metadata_elsewhere.MUTANTS,
        *options.MUTANTS,
        *pressure.MUTANTS,
        *repeating.MUTANTS,
        *request_ids.MUTANTS,
        *sampling.MUTANTS,
        *scopes.MUTANTS,
        *stopping.MUTANTS,
        *stream.MUTANTS,
        *testing.MUTANTS,
        *trace.MUTANTS,
        *usage.MUTANTS,
        *watch_load.MUTANTS,
        *watch_load_pace.MUTANTS,
        *watch_load_settings.MUTANTS,
    )
)


def select(ids: Sequence[str], names: Sequence[str]) -> tuple[Mutant, ...]:
    """The mutants of this table that `ids` and `names` choose, as `choose` does."""
    return choose(MUTANTS, ids, names)


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def requirement(self) -> str: ...


_MutantT = TypeVar("_MutantT", bound=_Named)


def choose(
    mutants: Sequence[_MutantT], ids: Sequence[str], names: Sequence[str]
) -> tuple[_MutantT, ...]:
    """Mutants whose requirement matches one of `ids` and whose name one of `names`.

    Both take globs; empty = all. Raises ConfigError with near matches for what matches nothing,
    and when the two together leave no mutant.
    """
    _validate("requirement with a mutant", ids, {mutant.requirement for mutant in mutants})
    _validate("mutant", names, {mutant.name for mutant in mutants})
    chosen = tuple(
        mutant
        for mutant in mutants
        if _matches(mutant.requirement, ids) and _matches(mutant.name, names)
    )
    if not chosen:
        raise ConfigError(
            f"no mutant is for {', '.join(ids)} and named {', '.join(names)}",
            expected="--id or --name alone",
        )
    return chosen


def _matches(value: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)


def _validate(kind: str, patterns: Sequence[str], known: set[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(value, pattern) for value in known):
            raise unknown_name(kind, pattern, known)
