"""Whether a row binds a target, and the reason that is reported otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.model.applicability import APPLIES, applicability
from conformance.model.expression import parse
from conformance.model.facts import Facts
from conformance.model.registry import default_registry
from conformance.model.requirement import Level, Requirement
from conformance.model.status import SkipReason
from oe_wire import v1


def row(applies: str = "", profile: str = "core", *, legacy: bool = False) -> Requirement:
    return Requirement("OE-X-001", profile, Level.MUST, "x", ("D",), parse(applies), legacy=legacy)


@pytest.mark.parametrize(
    ("applies", "reason"),
    [
        ("role == 'prefill'", SkipReason.ROLE),
        ("not generates", SkipReason.ROLE),
        ("generates and model.supports_lora", SkipReason.MODEL),
        ("model.supports_lora and not generates", SkipReason.MODEL),
        ("capabilities.core.deterministic_seed", SkipReason.CAPABILITY_ABSENT),
        ("present(engine.service_endpoints)", SkipReason.CAPABILITY_ABSENT),
        ("'admin' in profiles", SkipReason.PROFILE_NOT_ADVERTISED),
        ("legacy", SkipReason.LEGACY),
        ("dialect == 'draft'", SkipReason.LEGACY),
        ("false", SkipReason.CAPABILITY_ABSENT),
    ],
)
def test_the_reason_follows_the_leaf(
    applies: str, reason: SkipReason, facts: Callable[..., Facts]
) -> None:
    """The first thing that the target lacks decides the reason code."""
    found = applicability(row(applies), facts())
    assert (found.applies, found.reason) == (False, reason)
    assert found.detail


def test_a_row_without_a_condition_applies(facts: Callable[..., Facts]) -> None:
    """Core rows bind every profile-aware engine."""
    assert applicability(row(), facts()) is APPLIES


def test_core_binds_an_engine_that_forgets_to_advertise_it(facts: Callable[..., Facts]) -> None:
    """Leaving core out of the list does not exempt an engine from it."""
    assert applicability(row(), facts(profiles=frozenset())).applies


def test_rows_of_a_profile_need_its_advertisement(facts: Callable[..., Facts]) -> None:
    """An optional profile binds only those who claim it."""
    found = applicability(row(profile="tasks"), facts())
    assert found.reason is SkipReason.PROFILE_NOT_ADVERTISED
    assert "tasks" in found.detail
    assert applicability(row(profile="tasks"), facts(profiles=frozenset({"tasks"}))).applies


def test_legacy_engines_are_bound_by_legacy_rows_only(facts: Callable[..., Facts]) -> None:
    """A row without the flag is skipped for a v0.1.0 engine, one with it is not."""
    old = facts(legacy=True, profiles=frozenset(), capabilities=None)
    assert applicability(row(), old).reason is SkipReason.LEGACY
    assert applicability(row(legacy=True), old).applies
    assert applicability(row(profile="adapters", legacy=True), old).applies


@pytest.mark.parametrize(
    ("id", "fields", "expected"),
    [
        ("OE-CORE-GEN-008", {"supports_text_input": True}, False),
        ("OE-CORE-GEN-008", {"supports_text_input": True, "supports_token_ids_input": False}, True),
        ("OE-CORE-GEN-015", {}, False),
        ("OE-CORE-GEN-015", {"max_output_tokens": 8}, True),
        ("OE-CORE-USE-004", {"supports_token_ids_input": True}, True),
        ("OE-CORE-DISC-019", {"max_output_tokens": 8}, False),
        ("OE-CORE-DISC-019", {"max_output_tokens": 8, "max_context_length": 9}, True),
        ("OE-CORE-DISC-014", {"served_model_aliases": ["a"]}, True),
        ("OE-CORE-DISC-014", {}, False),
        ("OE-CORE-TRACE-006", {"supports_multimodal": True}, True),
    ],
)
def test_shipped_conditions_on_the_model(
    id: str, fields: dict[str, object], expected: bool, facts: Callable[..., Facts]
) -> None:
    """Conditions of core rows follow ModelInfo."""
    target = facts(model=v1.ModelInfo(**fields))
    assert applicability(default_registry().requirement(id), target).applies is expected


def generation(**fields: object) -> v1.ModelInfo:
    return v1.ModelInfo(generation=v1.GenerationCapabilities(**fields))


@pytest.mark.parametrize(
    ("id", "info", "expected"),
    [
        ("OE-CORE-USE-006", generation(supports_prefix_cache_bypass=True), True),
        ("OE-CORE-USE-006", generation(supports_prefix_cache_bypass=False), False),
        ("OE-CORE-GEN-030", generation(supports_cache_salt=False), True),
        ("OE-CORE-GEN-030", generation(supports_cache_salt=True), False),
        ("OE-CORE-STREAM-009", generation(prompt_logprobs={"supported": True}), True),
        ("OE-CORE-STREAM-009", generation(), False),
        ("OE-CORE-STREAM-020", generation(output_logprobs={"supported": True}), True),
        ("OE-CORE-STREAM-027", generation(max_num_sequences=1), False),
        ("OE-CORE-STREAM-027", generation(max_num_sequences=2), True),
        ("OE-CORE-META-006", generation(supports_priority=True), False),
        ("OE-CORE-META-006", generation(), True),
        ("OE-CORE-META-010", generation(supports_priority=True), True),
        ("OE-CORE-GEN-009", generation(), True),
        ("OE-CORE-GEN-009", v1.ModelInfo(), False),
    ],
)
def test_shipped_conditions_on_generation(
    id: str, info: v1.ModelInfo, expected: bool, facts: Callable[..., Facts]
) -> None:
    """Conditions of core rows follow GenerationCapabilities."""
    assert applicability(default_registry().requirement(id), facts(model=info)).applies is expected


def test_a_prefill_engine_is_not_asked_for_tokens(facts: Callable[..., Facts]) -> None:
    """Every stream and usage row is skipped for its role; the role row and aborts by id stay."""
    prefill = facts(role="prefill", generates=False)
    for requirement in default_registry().requirements("core"):
        found = applicability(requirement, prefill)
        if requirement.group in ("OE-CORE-STREAM", "OE-CORE-USE"):
            assert found.reason is SkipReason.ROLE, requirement.id
    for name in ("OE-CORE-GEN-032", "OE-CORE-ABORT-001", "OE-CORE-DISC-001", "OE-CORE-HEALTH-001"):
        assert applicability(default_registry().requirement(name), prefill).applies
