"""The expected answer to one request, with the requirement behind every reason to refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

import grpc

Codes = frozenset[grpc.StatusCode]

INVALID: Codes = frozenset({grpc.StatusCode.INVALID_ARGUMENT})
NOT_FOUND: Codes = frozenset({grpc.StatusCode.NOT_FOUND})
INVALID_OR_DISABLED: Codes = INVALID | {grpc.StatusCode.FAILED_PRECONDITION}


class Kind(Enum):
    """How much a reason decides."""

    BROKEN = auto()  # the engine must refuse
    EITHER = auto()  # the rule lets the engine accept or refuse
    UNKNOWN = auto()  # neither the rules nor the declarations decide


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a request may not simply be accepted; `rule` is empty for UNKNOWN, `why` otherwise."""

    kind: Kind
    rule: str = ""
    codes: Codes = frozenset()
    why: str = ""


def broken(row: str, codes: Codes = INVALID) -> Reason:
    """The core row (`GEN-001`) demands a refusal with one of `codes`."""
    return Reason(Kind.BROKEN, f"OE-CORE-{row}", codes)


def either(row: str, codes: Codes = INVALID) -> Reason:
    """The core row allows acceptance as well as a refusal with one of `codes`."""
    return Reason(Kind.EITHER, f"OE-CORE-{row}", codes)


def unknown(why: str) -> Reason:
    """Nothing decides; a verdict on such a request would be a guess."""
    return Reason(Kind.UNKNOWN, why=why)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The answer that the requirements fix for one request.

    broken: requirement id to the statuses it allows, for each rule that demands a refusal.
    either: the same for rules that allow both outcomes. unknown: what could not be decided.
    """

    broken: Mapping[str, Codes]
    either: Mapping[str, Codes]
    unknown: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether a right engine must accept the request and finish it."""
        return not (self.broken or self.either or self.unknown)

    @property
    def refused(self) -> bool:
        """Whether a right engine must refuse it, whatever is undecided besides."""
        return bool(self.broken)

    def only(self, rule: str) -> bool:
        """Whether breaking `rule` is the one reason to refuse: it alone fixes the status."""
        return set(self.broken) == {rule} and not self.unknown

    def describe(self) -> str:
        """One line for skips and tests."""
        if self.accepted:
            return "accepted"
        parts = [*self.broken, *(f"{rule} allows both" for rule in self.either), *self.unknown]
        return "; ".join(parts)


def collect(reasons: Iterable[Reason]) -> Expectation:
    """Sum up; a rule broken twice allows the statuses that both breaches allow."""
    held: dict[Kind, dict[str, Codes]] = {Kind.BROKEN: {}, Kind.EITHER: {}}
    undecided: list[str] = []
    for reason in reasons:
        if reason.kind is Kind.UNKNOWN:
            undecided.append(reason.why)
            continue
        codes = held[reason.kind]
        codes[reason.rule] = codes.get(reason.rule, reason.codes) & reason.codes
    return Expectation(
        MappingProxyType(held[Kind.BROKEN]), MappingProxyType(held[Kind.EITHER]), tuple(undecided)
    )
