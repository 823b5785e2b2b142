"""Which requirements will be judged on this target, and why the others will not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.checks.check import Check
from conformance.model.applicability import CORE, applicability
from conformance.model.profile import Profile
from conformance.model.registry import Registry
from conformance.model.requirement import Need, Requirement
from conformance.model.status import SkipReason, Status
from conformance.runner.selection import Selection
from conformance.wire.declared import Declared


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement of the plan.

    check is None where nothing is to be run: either `status` says why (with reason and detail),
    or the requirement has no check yet (`unchecked`).
    """

    requirement: Requirement
    check: Check | None = None
    status: Status | None = None
    reason: SkipReason | None = None
    detail: str = ""

    @property
    def unchecked(self) -> bool:
        """Whether the requirement applies but no check for it exists."""
        return self.check is None and self.status is None

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may use the target while the check runs."""
        return Need.EXCLUSIVE in self.requirement.needs

    @property
    def restarts(self) -> bool:
        """Whether the target is another one after the check: a new instance at the address."""
        return Need.RESTART in self.requirement.needs


@dataclass(frozen=True, slots=True)
class Plan:
    """Judged profiles, prerequisites first, and the rows of every known profile in file order."""

    profiles: tuple[Profile, ...]
    rows: tuple[Row, ...]

    @property
    def to_run(self) -> tuple[Row, ...]:
        """Rows with a check to run."""
        return tuple(row for row in self.rows if row.check is not None)

    def of(self, profile: Profile) -> tuple[Row, ...]:
        """Rows of one profile."""
        return tuple(row for row in self.rows if row.requirement.profile == profile.name)


def plan(
    registry: Registry,
    checks: Mapping[str, Check],
    declared: Declared,
    selection: Selection,
) -> Plan:
    """The plan for a target that declares `declared`.

    Core is judged on every engine, advertised or not: it is mandatory. On a legacy engine, which
    advertises nothing, every profile with rows for such engines is.
    """
    rows = tuple(
        _row(requirement, checks.get(requirement.id), declared, selection)
        for profile in registry.profiles
        for requirement in profile.requirements
    )
    judged = tuple(
        profile for profile in registry.profiles if _judged(profile, declared, selection)
    )
    return Plan(judged, rows)


def _judged(profile: Profile, declared: Declared, selection: Selection) -> bool:
    if not selection.wants(profile.name):
        return False
    if declared.legacy:
        return any(row.legacy for row in profile.requirements)
    return profile.name == CORE or profile.name in declared.profiles


def _row(
    requirement: Requirement, check: Check | None, declared: Declared, selection: Selection
) -> Row:
    if not selection.wants(requirement.profile) or not selection.includes(requirement):
        return Row(requirement, None, Status.EXCLUDED, SkipReason.OPERATOR, "not selected")
    applies = applicability(requirement, declared)
    if not applies.applies:
        return Row(requirement, None, Status.NOT_APPLICABLE, applies.reason, applies.detail)
    return Row(requirement, check)
