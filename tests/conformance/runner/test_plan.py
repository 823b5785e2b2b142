from __future__ import annotations

import dataclasses

import pytest

from conformance.checks import all_checks
from conformance.errors import ConfigError
from conformance.model.registry import default_registry
from conformance.model.requirement import Level
from conformance.model.status import SkipReason, Status
from conformance.runner.plan import Plan, Row, plan
from conformance.runner.selection import Selection, validated
from conformance.wire.declared import Declared, TargetClass
from tests.conformance.fake_engine import FakeEngine, server_info


def planned(declared: Declared, **selection: object) -> Plan:
    return plan(default_registry(), all_checks(), declared, Selection(**selection))  # type: ignore[arg-type]


def row(made: Plan, identifier: str) -> Row:
    return next(row for row in made.rows if row.requirement.id == identifier)


@pytest.fixture(scope="module")
def declared() -> Declared:
    return FakeEngine().declared


def test_every_requirement_has_a_row(declared: Declared) -> None:
    """Nothing is left out silently, whatever is selected."""
    made = planned(declared, ids=("OE-CORE-GEN-001",))
    assert [r.requirement.id for r in made.rows] == [
        r.id for r in default_registry().requirements()
    ]


def test_rows_of_profiles_that_are_not_advertised_do_not_apply(declared: Declared) -> None:
    """The reason names the profile; only core is judged."""
    made = planned(declared)
    load = row(made, "OE-LOAD-001")
    assert (load.status, load.reason) == (Status.NOT_APPLICABLE, SkipReason.PROFILE_NOT_ADVERTISED)
    assert [profile.name for profile in made.profiles] == ["core"]


def test_a_row_without_a_check_is_unchecked(declared: Declared) -> None:
    """It applies, and no check exists: not a skip."""
    made = plan(default_registry(), {}, declared, Selection())
    assert row(made, "OE-CORE-GEN-001").unchecked
    assert made.to_run == ()


def test_what_the_engine_does_not_declare_does_not_apply(declared: Declared) -> None:
    """Without prompt logprobs no rule about them is run, and the detail says which field."""
    model = type(declared.model)()
    model.CopyFrom(declared.model)
    model.generation.ClearField("prompt_logprobs")
    made = planned(dataclasses.replace(declared, model=model))
    skipped = row(made, "OE-CORE-STREAM-009")
    assert skipped.status is Status.NOT_APPLICABLE
    assert "prompt_logprobs" in skipped.detail


@pytest.mark.parametrize(
    ("selection", "runs", "left_out"),
    [
        ({"ids": ("OE-CORE-GEN-00?",)}, "OE-CORE-GEN-001", "OE-CORE-GEN-010"),
        ({"excluded": ("OE-CORE-STREAM-*",)}, "OE-CORE-GEN-001", "OE-CORE-STREAM-001"),
        ({"level": Level.MUST}, "OE-CORE-GEN-001", "OE-CORE-STREAM-024"),
        ({"profiles": ("core",)}, "OE-CORE-GEN-001", "OE-LOAD-001"),
    ],
)
def test_selection(
    declared: Declared, selection: dict[str, object], runs: str, left_out: str
) -> None:
    """What the operator leaves out is excluded, never passed."""
    made = planned(declared, **selection)
    assert row(made, runs).check is not None
    assert row(made, left_out).status is Status.EXCLUDED


def test_legacy_engines_are_held_to_legacy_rows_of_every_profile() -> None:
    """A v0.1.0 engine advertises nothing; rows flagged legacy bind it all the same."""
    legacy = Declared(TargetClass.LEGACY, "v0.1.0", server_info=server_info())
    made = planned(legacy)
    assert row(made, "OE-CORE-CAP-001").reason is SkipReason.LEGACY
    assert row(made, "OE-CORE-DISC-005").status is None
    assert {"core", "kv_events"} <= {profile.name for profile in made.profiles}


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(profiles=("cores",)), "perhaps core"),
        (Selection(ids=("OE-CORE-GEN-0001",)), "perhaps OE-CORE-GEN-001"),
        (Selection(ids=("OE-NOTHING-*",)), "matches no requirement id"),
        (Selection(excluded=("OE-CORE-GEN-999",)), "unknown requirement id"),
    ],
)
def test_a_selection_of_nothing_is_an_error(selection: Selection, said: str) -> None:
    """A typing error must not become a run that judged nothing."""
    with pytest.raises(ConfigError, match=said):
        validated(selection, default_registry())
