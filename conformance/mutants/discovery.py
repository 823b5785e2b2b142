"""Mutants of what an engine says about itself and its models."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import (
    edited,
    edited_for,
    forgiven,
    model_facts,
    refusal,
    served_model,
    unimplemented,
)
from conformance.mutants.methods import (
    BOTH_INFOS,
    BOTH_LOADS,
    BOTH_MODEL_INFOS,
    CAPABILITIES,
    CONTROL_MODEL_INFO,
    ENGINE_INFO,
    GENERATE,
    MODEL_INFO,
    SERVER_INFO,
    each,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant
from oe_wire import v1

GHOST = "listed-but-not-loaded"
UINT64_MAX = 2**64 - 1
# Seconds for which a discovery call stays in the queue of the engine that counts it as load.
QUEUED_SECONDS = 0.5


def _set(**values: Any) -> Callable[[Any], None]:
    """An edit that assigns fields."""

    def edit(message: Any) -> None:
        for name, value in values.items():
            setattr(message, name, value)

    return edit


def _other_version(info: Any) -> None:
    info.engine_version += "+control"


def _without_aliases(info: Any) -> None:
    info.ClearField("served_model_aliases")


def _future_client(info: Any) -> None:
    info.minimum_client_revision = info.schema_revision + 1


async def _instance_renewed(exchange: Exchange) -> Answers:
    """From the second EngineInfo on, every answer carries another id, all the same one."""
    state = exchange.state
    state.setdefault("renewed", secrets.token_hex(16))
    async for message in exchange.upstream():
        if state.get("asked"):
            message.instance_id = state["renewed"]
        if isinstance(message, v1.EngineInfo):
            state["asked"] = True
        yield message


def _listed_twice(info: Any) -> None:
    info.supported_models.append(info.supported_models[0])


def _ghost_listed(info: Any) -> None:
    info.supported_models.append(GHOST)


async def _ghost_scope(exchange: Exchange) -> Answers:
    """The listed model has capabilities, copied from the real one."""
    asked = exchange.request.model
    if asked == GHOST:
        exchange.request.model = await served_model(exchange)
    async for scope in exchange.upstream():
        if asked == GHOST:
            scope.model = GHOST
        yield scope


async def _as_served(exchange: Exchange) -> Answers:
    exchange.request.model = await served_model(exchange)
    async for message in exchange.upstream():
        yield message


async def _empty_as_served(exchange: Exchange) -> Answers:
    exchange.request.model = exchange.request.model or await served_model(exchange)
    async for message in exchange.upstream():
        yield message


async def _alias_refused(exchange: Exchange) -> Answers:
    if exchange.request.model in (await model_facts(exchange)).served_model_aliases:
        raise refusal(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND", "model is not served")
    async for response in exchange.upstream():
        yield response


def _alias_as_id(info: Any, request: Any) -> None:
    if request.model in info.served_model_aliases:
        info.model_id = request.model


def _unlimited(info: Any) -> None:
    info.capacity.max_running_requests = UINT64_MAX


def _no_context_ranks(info: Any) -> None:
    info.parallelism.decode_context_parallel_size = 0


def _rank_outside(info: Any) -> None:
    parallelism = info.parallelism
    size = max(1, parallelism.data_parallel_size)
    parallelism.data_parallel_size = size
    parallelism.data_parallel_rank = parallelism.data_parallel_start_rank + size


def _bound_address(info: Any) -> None:
    info.kv_connector.local_endpoints.add(host="0.0.0.0", port=5557)  # noqa: S104 - the very fault


def _output_over_window(info: Any) -> None:
    info.max_output_tokens = info.max_context_length + 1


async def _output_to_window(exchange: Exchange) -> Answers:
    """The limit that is told too large can be asked for, so that it is only wrong, not refused."""
    window = (await model_facts(exchange)).max_context_length
    if exchange.request.stopping.max_tokens == window + 1:
        exchange.request.stopping.max_tokens = window
    async for response in exchange.upstream():
        yield response


def _target_twice(scope: Any) -> None:
    scope.core.abort_targets.append(scope.core.abort_targets[0])


def _modes_without_support(generation: Any) -> None:
    guided = generation.guided_decoding
    guided.supported = False
    if not guided.modes:
        guided.modes.append(v1.GUIDED_DECODING_MODE_JSON_SCHEMA)


def _modes_in_both(message: Any) -> None:
    if message.HasField("generation"):
        _modes_without_support(message.generation)


async def _counted_as_load(exchange: Exchange) -> Answers:
    exchange.state["asked"] = time.monotonic()
    async for message in exchange.upstream():
        yield message


async def _queued_in_load(exchange: Exchange) -> Answers:
    busy = time.monotonic() - exchange.state.get("asked", -QUEUED_SECONDS) < QUEUED_SECONDS
    async for message in exchange.upstream():
        # With ranks the total would contradict their sum, which is another row's.
        if busy and not message.ranks:
            message.queued_requests += 1
        yield message


async def _one_endpoint_only(exchange: Exchange) -> Answers:
    host, _, port = exchange.address.rpartition(":")
    async for info in exchange.upstream():
        del info.service_endpoints[:]
        info.service_endpoints.add(service="openengine.v1.Inference", host=host, port=int(port))
        yield info


MUTANTS = (
    Mutant(
        "engine-info-absent",
        "OE-CORE-DISC-001",
        "Discovery is registered without GetEngineInfo.",
        {ENGINE_INFO: unimplemented()},
        # Core requires the RPC.
        frozenset({"OE-CORE-CAP-008"}),
    ),
    Mutant(
        "server-info-absent",
        "OE-CORE-DISC-002",
        "With discovery added, the older GetServerInfo was taken out.",
        {SERVER_INFO: unimplemented()},
        # Core requires the RPC, and v0.1.0 clients have no other.
        frozenset({"OE-CORE-CAP-008", "OE-CORE-COMPAT-002"}),
    ),
    Mutant(
        "server-info-differs",
        "OE-CORE-DISC-003",
        "Two handlers build the same facts, and one of them adds to the version.",
        {SERVER_INFO: edited(_other_version)},
    ),
    Mutant(
        "control-model-info-differs",
        "OE-CORE-DISC-004",
        "Control.GetModelInfo was not told of the aliases.",
        {CONTROL_MODEL_INFO: edited(_without_aliases)},
        # It is an alias.
        frozenset({"OE-CORE-COMPAT-001"}),
    ),
    Mutant(
        "schema-revision-zero",
        "OE-CORE-DISC-005",
        "The schema revision is left at its default.",
        each(BOTH_INFOS, edited(_set(schema_revision=0))),
    ),
    Mutant(
        "client-revision-ahead",
        "OE-CORE-DISC-006",
        "Clients must be newer than the schema that the engine speaks.",
        each(BOTH_INFOS, edited(_future_client)),
    ),
    Mutant(
        "schema-release-moving",
        "OE-CORE-DISC-007",
        "The protos' branch is reported as their release.",
        each(BOTH_INFOS, edited(_set(schema_release="main"))),
    ),
    Mutant(
        "schema-release-empty",
        "OE-CORE-DISC-007",
        "The protos' release is not reported.",
        each(BOTH_INFOS, edited(_set(schema_release=""))),
    ),
    Mutant(
        "instance-renewed",
        "OE-CORE-DISC-008",
        "The instance id is made again while the process runs.",
        each((*BOTH_INFOS, CAPABILITIES), _instance_renewed),
        # The load keeps the true one.
        frozenset({"OE-CORE-CAP-017", "OE-LOAD-002"}),
    ),
    Mutant(
        "model-listed-twice",
        "OE-CORE-DISC-010",
        "The served name and the name of the checkpoint are listed, even if they are the same.",
        each(BOTH_INFOS, edited(_listed_twice)),
    ),
    Mutant(
        "model-listed-unknown",
        "OE-CORE-DISC-011",
        "A model that failed to load stays in supported_models.",
        {**each(BOTH_INFOS, edited(_ghost_listed)), CAPABILITIES: _ghost_scope},
    ),
    Mutant(
        "any-model-known",
        "OE-CORE-DISC-012",
        "GetModelInfo of a server of one model answers to any name.",
        each(BOTH_MODEL_INFOS, forgiven(grpc.StatusCode.NOT_FOUND, _as_served)),
    ),
    Mutant(
        "empty-model-known",
        "OE-CORE-DISC-013",
        "GetModelInfo without a name tells about the default model.",
        each(BOTH_MODEL_INFOS, _empty_as_served),
    ),
    Mutant(
        "alias-refused",
        "OE-CORE-DISC-014",
        "Aliases are known to discovery, and Generate compares with the served name alone.",
        {GENERATE: _alias_refused},
    ),
    Mutant(
        "alias-as-model-id",
        "OE-CORE-DISC-014",
        "GetModelInfo repeats the name that was asked for as the model's id.",
        each(BOTH_MODEL_INFOS, edited_for(_alias_as_id)),
    ),
    Mutant(
        "unlimited-as-maximum",
        "OE-CORE-DISC-015",
        "A limit that does not exist is reported as the largest number.",
        each(BOTH_INFOS, edited(_unlimited)),
    ),
    Mutant(
        "context-ranks-zero",
        "OE-CORE-DISC-016",
        "decode_context_parallel_size is filled in from a variable that was never set.",
        each(BOTH_INFOS, edited(_no_context_ranks)),
    ),
    Mutant(
        "rank-outside",
        "OE-CORE-DISC-017",
        "Ranks are counted from one, so that the last one lies outside.",
        each(BOTH_INFOS, edited(_rank_outside)),
    ),
    Mutant(
        "bound-address-advertised",
        "OE-CORE-DISC-018",
        "The address that the socket is bound to is advertised.",
        each(BOTH_INFOS, edited(_bound_address)),
    ),
    Mutant(
        "output-over-window",
        "OE-CORE-DISC-019",
        "The output limit is computed without the window.",
        {**each(BOTH_MODEL_INFOS, edited(_output_over_window)), GENERATE: _output_to_window},
    ),
    Mutant(
        "abort-target-twice",
        "OE-CORE-DISC-020",
        "A list of capabilities is put together from two sources that overlap.",
        {CAPABILITIES: edited(_target_twice)},
    ),
    Mutant(
        "modes-without-support",
        "OE-CORE-DISC-021",
        "Guided decoding is switched off and its modes are still listed.",
        each((MODEL_INFO, CONTROL_MODEL_INFO, CAPABILITIES), edited(_modes_in_both)),
        # What is switched off is served all the same.
        frozenset({"OE-CORE-GEN-023"}),
    ),
    Mutant(
        "discovery-counts-as-load",
        "OE-CORE-DISC-023",
        "Discovery calls pass through the request queue and show up in the load of the engine.",
        {MODEL_INFO: _counted_as_load, **each(BOTH_LOADS, _queued_in_load)},
    ),
    Mutant(
        "endpoints-incomplete",
        "OE-CORE-DISC-024",
        "Only the data plane is listed in service_endpoints.",
        {ENGINE_INFO: _one_endpoint_only},
    ),
)
