"""Mutants of what Dynamo's sidecars need: each takes one need away from an engine that meets all.

MUTANTS stand before an engine that generates, PREFILL_MUTANTS before one of the prefill role.
"""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, edited_for, recoded, refused, when
from conformance.mutants.methods import (
    ABORT,
    BOTH_INFOS,
    BOTH_MODEL_INFOS,
    CONTROL_HEALTH,
    GENERATE,
    each,
)
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant, Refused
from oe_wire import v1

LOAD = "openengine.v1.Control/GetLoad"
SOURCES = "openengine.v1.Control/GetKvEventSources"
EVENTS = "openengine.v1.Control/SubscribeKvEvents"
_STANDARD = ("openengine-", "grpc-", "traceparent", "tracestate", "user-agent", "oe-")
_TWO_RANKS = 2


def _need(number: int) -> str:
    return f"OE-CLIENT-DYNAMO-{number:03}"


def _infos(edit: Any) -> dict[str, Behaviour]:
    return each(BOTH_INFOS, edited(edit))


def _models(edit: Any) -> dict[str, Behaviour]:
    return each(BOTH_MODEL_INFOS, edited(edit))


def _set(**fields: Any) -> Any:
    def edit(message: Any) -> None:
        for name, value in fields.items():
            setattr(message, name, value)

    return edit


def _two_models(info: Any) -> None:
    info.supported_models.append("another")


def _no_tokens_claim(info: Any) -> None:
    info.ClearField("supports_token_ids_input")


def _other_names(info: Any) -> None:
    info.model_id, info.served_model_name = "other/model", "other"
    del info.served_model_aliases[:]


def _no_context_length(info: Any) -> None:
    info.ClearField("max_context_length")
    # Without a window the relation between the two says nothing.
    info.ClearField("max_output_tokens")


def _clear_generation(name: str) -> Any:
    def edit(info: Any) -> None:
        info.generation.ClearField(name)

    return edit


async def _new_name_each_time(exchange: Exchange) -> Answers:
    exchange.state["reads"] = exchange.state.get("reads", 0) + 1
    async for info in exchange.upstream():
        info.engine_name = f"{info.engine_name} {exchange.state['reads']}"
        yield info


def _no_running_requests(load: Any) -> None:
    load.ClearField("running_requests")


def _overfull(load: Any) -> None:
    load.total_kv_blocks = 10
    load.used_kv_blocks = 11


def _two_ranks(info: Any) -> None:
    info.parallelism.data_parallel_size = _TWO_RANKS
    info.parallelism.ClearField("data_parallel_rank")


def _one_rank(load: Any) -> None:
    del load.ranks[:]
    load.ranks.add(data_parallel_rank=0, running_requests=0)


def _source(host: str) -> v1.GetKvEventSourcesResponse:
    source = v1.KvEventSource(transport="grpc", encoding="protobuf", data_parallel_rank=0)
    source.endpoint_addr.CopyFrom(v1.KvEndpoint(host=host, port=5557, protocol="grpc"))
    return v1.GetKvEventSourcesResponse(sources=[source])


async def _with_gap(_: Exchange) -> Answers:
    """Batches of one stored block each; the second number is left out."""
    for number in (1, 3):
        batch = v1.KvEventBatch(sequence_number=number, data_parallel_rank=0)
        stored = batch.events.add().block_stored
        stored.block_size = 2
        stored.token_ids.extend((5, 6))
        stored.block_hashes.add(value=str(-number).encode(), encoding="decimal_int64")
        yield v1.SubscribeKvEventsResponse(batch=batch)


def _negative_top_k(request: Any) -> bool:
    return bool(request.sampling.top_k == -1)


def _refuse(code: grpc.StatusCode, details: str) -> Behaviour:
    return refused(Refused(code, details))


async def _strict_metadata(exchange: Exchange) -> Answers:
    if any(not key.startswith(_STANDARD) for key, _ in exchange.metadata):
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "unknown metadata")
    async for response in exchange.upstream():
        yield response


def _other_id(response: Any) -> None:
    response.request_id = f"engine-{response.request_id}"


async def _empty_first(exchange: Exchange) -> Answers:
    yield v1.GenerateResponse(request_id=exchange.request.request_id)
    async for response in exchange.upstream():
        yield response


def _index_lost(response: Any) -> None:
    if response.HasField("token"):
        response.token.ClearField("output_index")


def _reason_lost(response: Any) -> None:
    if response.HasField("finished"):
        response.finished.reason = v1.FINISH_REASON_UNSPECIFIED


def _usage_so_far(response: Any) -> None:
    if response.HasField("token"):
        response.usage.completion_tokens = 1


async def _prompt_unasked(exchange: Exchange) -> Answers:
    first = v1.GenerateResponse(request_id=exchange.request.request_id)
    first.prompt.tokens.add(token_id=5)
    yield first
    async for response in exchange.upstream():
        yield response


async def _no_end(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if not response.HasField("finished"):
            yield response


def _first_logprob_lost(response: Any, request: Any) -> None:
    if response.HasField("token") and request.response.return_output_logprobs:
        for info in response.token.tokens[:1]:
            info.ClearField("logprob")


async def _unknown_is_internal(exchange: Exchange) -> Answers:
    """Ids that are gone are looked up without a test."""
    async for response in exchange.upstream():
        if response.status == v1.ABORT_STATUS_ALREADY_FINISHED:
            raise Refused(grpc.StatusCode.INTERNAL, "KeyError")
        yield response


def _no_status(response: Any) -> None:
    response.status = v1.ABORT_STATUS_UNSPECIFIED


def _blamed_on_the_engine(refusal: Refused, _: Any) -> Refused:
    if refusal.code is grpc.StatusCode.INVALID_ARGUMENT:
        return Refused(grpc.StatusCode.INTERNAL, refusal.details)
    return refusal


def _mutant(
    name: str, number: int, story: str, behaviour: dict[str, Behaviour], *also: int
) -> Mutant:
    return Mutant(name, _need(number), story, behaviour, frozenset(map(_need, also)))


MUTANTS: tuple[Mutant, ...] = (
    _mutant("nameless", 1, "The engine has no name.", _infos(_set(engine_name=" "))),
    _mutant(
        "newer-clients-only",
        2,
        "The engine serves clients from revision 2 on.",
        _infos(_set(schema_revision=2, minimum_client_revision=2)),
    ),
    _mutant(
        "release-by-tag",
        3,
        "schema_release is a tag, as the API text asks for.",
        _infos(_set(schema_release="v0.2.0")),
    ),
    _mutant("roleless", 4, "The role is left out.", _infos(_set(engine_role=0))),
    _mutant("two-models", 5, "Two models are served by one engine.", _infos(_two_models)),
    _mutant(
        "token-input-unreported",
        6,
        "Token ids are taken and nothing says so.",
        _models(_no_tokens_claim),
    ),
    _mutant("model-renamed", 7, "ModelInfo knows the model by other names.", _models(_other_names)),
    _mutant(
        "new-name-each-time",
        9,
        "The name is made up whenever it is asked for.",
        each(BOTH_INFOS, _new_name_each_time),
    ),
    _mutant(
        "degraded",
        10,
        "A warning in one component makes the engine DEGRADED.",
        {CONTROL_HEALTH: edited(_set(state=v1.HEALTH_STATE_DEGRADED))},
    ),
    _mutant("window-unreported", 11, "The window is not reported.", _models(_no_context_length)),
    _mutant(
        "sequences-unreported",
        12,
        "The most sequences of a request are not reported.",
        _models(_clear_generation("max_num_sequences")),
    ),
    _mutant(
        "stop-display-unreported",
        13,
        "Nothing says whether stops can be shown.",
        _models(_clear_generation("supports_stop_in_output")),
    ),
    _mutant(
        "running-uncounted",
        14,
        "Load comes without the running requests.",
        {LOAD: edited(_no_running_requests)},
    ),
    _mutant("overfull", 15, "Shared blocks are counted twice.", {LOAD: edited(_overfull)}),
    _mutant(
        "rank-load-missing",
        16,
        "Load of one of two ranks is reported.",
        _infos(_two_ranks) | {LOAD: edited(_one_rank)},
    ),
    _mutant(
        "events-from-anywhere",
        17,
        "The event source is the address that the engine listens on.",
        {SOURCES: answered(lambda _: _source("0.0.0.0"))},  # noqa: S104 - what is wrong with it
    ),
    _mutant(
        "negative-top-k-refused",
        18,
        "top_k -1 is taken for a mistake.",
        {GENERATE: when(_negative_top_k, _refuse(grpc.StatusCode.INVALID_ARGUMENT, "top_k"))},
    ),
    _mutant("metadata-refused", 19, "Unknown metadata is refused.", {GENERATE: _strict_metadata}),
    _mutant(
        "internal-ids", 20, "Responses carry the engine's own id.", {GENERATE: edited(_other_id)}
    ),
    _mutant("empty-response", 21, "A stream opens with nothing.", {GENERATE: _empty_first}),
    _mutant("index-lost", 22, "The only output has no index.", {GENERATE: edited(_index_lost)}),
    _mutant("reason-lost", 23, "An end has no reason.", {GENERATE: edited(_reason_lost)}),
    _mutant(
        "usage-so-far",
        24,
        "Usage so far is sent with each token.",
        {GENERATE: edited(_usage_so_far)},
    ),
    _mutant("prompt-unasked", 25, "The prompt comes back unasked.", {GENERATE: _prompt_unasked}),
    _mutant(
        "no-end",
        26,
        "The terminal event is lost when the stream is closed.",
        {GENERATE: _no_end},
        18,  # no request is brought to its end
        19,
        24,
        31,
    ),
    _mutant(
        "first-logprob-lost",
        27,
        "The first token's log probability stays with the engine that made it.",
        {GENERATE: edited_for(_first_logprob_lost)},
    ),
    _mutant(
        "late-abort-fails", 31, "An Abort that comes late fails.", {ABORT: _unknown_is_internal}
    ),
    _mutant("abort-says-nothing", 32, "Abort answers nothing.", {ABORT: edited(_no_status)}),
    _mutant(
        "refusals-internal",
        33,
        "Validation raises, and what it raises is INTERNAL.",
        {GENERATE: recoded(_blamed_on_the_engine)},
    ),
    _mutant(
        "event-gap",
        34,
        "A batch of KV events is dropped and its number with it.",
        {SOURCES: answered(lambda _: _source("engine-0")), EVENTS: _with_gap},
    ),
)


def _no_backend(info: Any) -> None:
    info.kv_connector.ClearField("transfer_backend")


async def _first_token_too(exchange: Exchange) -> Answers:
    first = v1.GenerateResponse(request_id=exchange.request.request_id)
    first.token.output_index = 0
    first.token.tokens.add(token_id=5)
    yield first
    async for response in exchange.upstream():
        yield response


def _nameless_session(response: Any) -> None:
    response.prefill_ready.kv_session.ClearField("session_id")


def _no_usage(response: Any) -> None:
    response.ClearField("usage")


PREFILL_MUTANTS: tuple[Mutant, ...] = (
    _mutant(
        "connector-unnamed",
        8,
        "The connector does not say how blocks are handed over.",
        _infos(_no_backend),
    ),
    _mutant(
        "prefill-talks",
        28,
        "The first token is sent by the prefill side too.",
        {GENERATE: _first_token_too},
    ),
    _mutant("session-unnamed", 29, "The session has no id.", {GENERATE: edited(_nameless_session)}),
    _mutant("prefill-uncounted", 30, "A prefill costs nothing.", {GENERATE: edited(_no_usage)}),
)

__all__ = ["MUTANTS", "PREFILL_MUTANTS"]
