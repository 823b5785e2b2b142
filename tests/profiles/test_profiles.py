"""The shipped profile files against the wire and against the list of ids that never shrinks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.data import data_dir
from conformance.model.descriptors import leaf_paths, message_descriptor, resolve
from conformance.model.expression import names
from conformance.model.profile import Absent, Zero
from conformance.model.registry import default_registry
from conformance.model.requirement import Need, Subject
from oe_wire.services import METHODS

REGISTRY = default_registry()
IDS: dict[str, str] = json.loads((Path(__file__).parent / "data" / "ids.json").read_text("utf-8"))
FEATURES = """
    input.text input.token_ids request.media request.lora request.guided request.prompt_logprobs
    request.output_logprobs request.num_sequences request.stop_in_output request.cache_salt
    request.prefix_cache_bypass request.kv_session metadata.priority metadata.target_dp_rank
    rpc.prefill rpc.generate_turn rpc.generate_encoded rpc.execute
    task.embed task.classify task.score
"""
PROFILES = (
    "core", "adapters", "admin", "encoder", "kv_events", "kv_handoff", "orchestration",
    "runtime_events", "scheduling_load", "sessions", "tasks", "testing",
)  # fmt: skip


def test_ids_and_levels_are_those_of_the_protocol() -> None:
    """Exactly the 448 known ids, each at its level: ids are append-only."""
    assert len(IDS) == 448
    assert {row.id: row.level.value for row in REGISTRY.requirements()} == IDS


def test_eleven_profiles_and_testing() -> None:
    """Every profile of the protocol has a file at version 1.0, named after it."""
    assert REGISTRY.profile_names == PROFILES
    for profile in REGISTRY.profiles:
        assert profile.source == f"{profile.name}-{profile.version}.toml"
        assert profile.version == "1.0"


def test_flags_of_the_protocol() -> None:
    """131 rows bind legacy engines too, 26 need a hook and 5 a deterministic engine."""
    rows = REGISTRY.requirements()
    assert sum(row.legacy for row in rows) == 131
    assert sum(Need.HOOK in row.needs for row in rows) == 26
    assert sum(Need.DETERMINISTIC in row.needs for row in rows) == 5


def test_every_profile_states_requirements() -> None:
    """A profile without any could be claimed by everybody."""
    assert [profile.name for profile in REGISTRY.profiles if not profile.requirements] == []


def test_one_rule_binds_reports() -> None:
    """That a profile is atomic says what may be claimed; all other rows bind engines."""
    bound = [row.id for row in REGISTRY.requirements() if row.subject is Subject.REPORT]
    assert bound == ["OE-PROF-002"]


def test_every_optional_profile_needs_core() -> None:
    """Core stands alone; all others build on core 1.0."""
    for profile in REGISTRY.profiles:
        needed = [(need.profile, need.major, need.minor) for need in profile.prerequisites]
        assert needed == ([] if profile.name == "core" else [("core", 1, 0)])


@pytest.mark.parametrize("profile", REGISTRY.profiles, ids=lambda profile: profile.name)
def test_every_field_of_the_capability_message_is_described(profile: Any) -> None:
    """No field that an engine may declare is left without scope, default and zero behaviour."""
    described = {field.path for field in profile.capabilities}
    if not profile.capability:
        assert not described
        return
    root = resolve(message_descriptor("Capabilities"), profile.capability).message_type
    assert described >= set(leaf_paths(root, f"{profile.capability}."))


def test_every_field_of_generation_capabilities_is_described() -> None:
    """Core describes what a model can generate as well."""
    described = {field.path for field in REGISTRY.profile("core").capabilities}
    assert described >= set(leaf_paths(message_descriptor("GenerationCapabilities"), "generation."))
    assert {"model.max_context_length", "model.max_output_tokens"} <= described


def test_every_rpc_belongs_to_a_profile() -> None:
    """The profiles together name exactly the RPCs of the wire."""
    named = {method for profile in REGISTRY.profiles for method, _ in profile.methods()}
    assert named == set(METHODS)


def test_aliases_share_types_and_carry_the_same_name() -> None:
    """An alias is the same RPC on another service."""
    aliases = [
        (method, rpc.alias_of)
        for profile in REGISTRY.profiles
        for method, rpc in profile.methods()
        if rpc.alias_of
    ]
    assert len(aliases) == 7
    for sibling, original in aliases:
        one, other = METHODS[sibling], METHODS[original]
        assert (one.name, one.request, one.response) == (other.name, other.request, other.response)


def test_feature_tokens_are_the_registry_of_1_0() -> None:
    """21 tokens, and every one but the data-parallel target is governed by a field."""
    assert sorted(REGISTRY.features) == sorted(FEATURES.split())
    governed = {
        token
        for profile in REGISTRY.profiles
        for field in profile.capabilities
        for token in field.features
    }
    assert REGISTRY.features - governed == {"metadata.target_dp_rank"}


def test_limits_that_a_client_may_miss_have_their_fallback() -> None:
    """The fallbacks of the protocol are those in the files."""
    fallback = {
        path: REGISTRY.capability(path).fallback
        for path in (
            "core.max_request_id_bytes",
            "core.max_request_bytes",
            "core.finished_request_retention_ms",
        )
    }
    assert list(fallback.values()) == [256, 4 * 1024 * 1024, 0]


def test_capability_rows_do_not_contradict_themselves() -> None:
    """An invalid zero has a minimum above it, defaults are given exactly where they count."""
    for profile in REGISTRY.profiles:
        for field in profile.capabilities:
            number = field.type in ("uint32", "uint64")
            assert (field.default is not None) is (field.absent is Absent.DEFAULT), field.path
            if number and field.zero is Zero.INVALID:
                assert field.minimum is not None, field.path
                assert field.minimum >= 1, field.path
                assert field.fallback != 0, field.path
            elif number:
                assert field.minimum == 0, field.path
            assert field.reference not in names(field.relation) or len(names(field.relation)) > 1


def test_a_row_does_not_repeat_that_its_profile_is_advertised() -> None:
    """The condition says what else is needed; the profile itself is implied."""
    for row in REGISTRY.requirements():
        if row.applies:
            quoted = f"'{row.profile}' in profiles"
            assert quoted not in row.applies.source, row.id


def test_hook_rows_that_touch_the_whole_engine_are_exclusive() -> None:
    """Restart, abort of all requests, pause and saturation run alone."""
    for name in (
        "OE-CORE-DISC-009",
        "OE-CORE-ABORT-009",
        "OE-CORE-ABORT-010",
        "OE-CORE-GEN-035",
        "OE-CORE-HEALTH-009",
        "OE-ADM-003",
        "OE-LOAD-042",
        "OE-KVE-021",
    ):
        assert Need.EXCLUSIVE in REGISTRY.requirement(name).needs, name


def test_deterministic_rows_have_the_engine_to_themselves() -> None:
    """Greedy output is only promised to repeat on an idle engine."""
    for row in REGISTRY.requirements():
        if Need.DETERMINISTIC in row.needs:
            assert Need.EXCLUSIVE in row.needs, row.id


def test_the_schema_is_valid_and_closed() -> None:
    """The schema obeys draft 2020-12 and no table accepts an unknown key."""
    text = (data_dir("profiles") / "schema" / "profile.json").read_text("utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    tables = [schema, *schema["$defs"].values()]
    closed = [table for table in tables if table.get("type") == "object"]
    assert len(closed) == 7
    assert all(table["additionalProperties"] is False for table in closed)
