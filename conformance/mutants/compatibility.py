"""Mutants of the rules for older and newer clients, aliases and the wire's numbers and times."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from conformance.mutants.behaviours import edited, refusal, refused, when
from conformance.mutants.methods import (
    BOTH_INFOS,
    BOTH_LOADS,
    CAPABILITIES,
    CONTROL_HEALTH,
    CONTROL_MODEL_INFO,
    ENGINE_INFO,
    GENERATE,
    WATCH_LOAD,
    each,
)
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant
from conformance.mutants.pausing import while_paused
from oe_wire import v1

CONTROL_LIST_LORAS = "openengine.v1.Control/ListLoras"
# Longer than discovery may take on a loaded machine.
LATE_SECONDS = 6.0
DRAFT_NOT_READY = 5
DRAFT_INTERNAL = 12


async def _first_instance(exchange: Exchange) -> Answers:
    async for message in exchange.upstream():
        message.instance_id = exchange.state.setdefault("instance", message.instance_id)
        yield message


async def _late(exchange: Exchange) -> Answers:
    await asyncio.sleep(LATE_SECONDS)
    async for message in exchange.upstream():
        yield message


def _unknown_role(request: Any) -> bool:
    return request.role not in v1.EngineRole.values()


def _role_of_a_later_revision(info: Any) -> None:
    info.engine_role = 77


def _extended(request: Any) -> bool:
    return len(UnknownFieldSet(request)) > 0


def _in_microseconds(info: Any) -> None:
    info.timestamp_unix_nanos //= 1000


def _ghost_adapter(response: Any) -> None:
    response.adapters.add(lora_id=77, lora_name="ghost", source_path="/nowhere")


def _draft_not_ready(response: Any) -> None:
    for item in (response, *response.checks):
        if item.state == v1.HEALTH_STATE_NOT_READY:
            item.state = DRAFT_NOT_READY


def _draft_internal(response: Any) -> None:
    if response.error.code == v1.ERROR_CODE_INTERNAL:
        response.error.code = DRAFT_INTERNAL


MOVED = refused(
    refusal(grpc.StatusCode.FAILED_PRECONDITION, "ROLE_MISMATCH", "use OpenEngineDiscovery")
)


def _invalid(details: str) -> Behaviour:
    return refused(refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", details))


MUTANTS = (
    Mutant(
        "instance-named-after-host",
        "OE-CORE-DISC-009",
        "The instance is named after its host and port, which a restart does not change.",
        each((CAPABILITIES, *BOTH_INFOS, *BOTH_LOADS, WATCH_LOAD), _first_instance),
    ),
    Mutant(
        "discovery-waits-for-scheduler",
        "OE-CORE-DISC-022",
        "Discovery asks the scheduler, which does not answer while it is paused.",
        while_paused({ENGINE_INFO: _late}),
    ),
    Mutant(
        "unknown-role-refused",
        "OE-CORE-ENUM-001",
        "A role is looked up by its number, and one that a later client knows is an error.",
        {CONTROL_HEALTH: when(_unknown_role, _invalid("role is none of EngineRole"))},
    ),
    Mutant(
        "role-of-a-later-revision",
        "OE-CORE-ENUM-002",
        "A value of the next revision is sent under the number of this one.",
        each(BOTH_INFOS, edited(_role_of_a_later_revision)),
    ),
    Mutant(
        "unknown-field-refused",
        "OE-CORE-ENUM-003",
        "A strict parser takes an unknown field for a client's mistake.",
        {GENERATE: when(_extended, _invalid("the request has a field that is not known"))},
    ),
    Mutant(
        "timestamps-in-microseconds",
        "OE-CORE-ENUM-004",
        "The load is stamped in microseconds.",
        each(BOTH_LOADS, edited(_in_microseconds)),
    ),
    Mutant(
        "alias-lists-more",
        "OE-CORE-COMPAT-001",
        "The older name keeps a list of adapters of its own.",
        {CONTROL_LIST_LORAS: edited(_ghost_adapter)},
        frozenset({"OE-LORA-001", "OE-LORA-008"}),
    ),
    Mutant(
        "model-info-moved",
        "OE-CORE-COMPAT-002",
        "Control.GetModelInfo sends its callers to the newer service.",
        {CONTROL_MODEL_INFO: MOVED},
        # Both names differ, and so do the aliases.
        frozenset({"OE-CORE-DISC-004", "OE-CORE-COMPAT-001"}),
    ),
    Mutant(
        "draft-not-ready",
        "OE-CORE-COMPAT-004",
        "The numbers of HealthState are those of a draft.",
        {CONTROL_HEALTH: edited(_draft_not_ready)},
        # Number 5 has no name in this revision, so it agrees with nothing.
        frozenset({"OE-CORE-ENUM-002", "OE-CORE-HEALTH-012"}),
    ),
    Mutant(
        "draft-internal",
        "OE-CORE-COMPAT-004",
        "The numbers of ErrorCode are those of a draft.",
        {GENERATE: edited(_draft_internal)},
        frozenset({"OE-CORE-ENUM-002", "OE-TEST-004"}),
    ),
)
