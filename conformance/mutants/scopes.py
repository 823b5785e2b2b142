"""Mutants of the scopes of Capabilities, and of the RPCs and limits that they promise."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import (
    answered,
    edited,
    edited_for,
    forgiven,
    model_facts,
    refusal,
    refused,
    repaired,
    unimplemented,
    when,
)
from conformance.mutants.methods import BOTH_MODEL_INFOS, CAPABILITIES, ENGINE_INFO, GENERATE, each
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.pausing import while_paused
from oe_wire import v1

EMBED = "openengine.v1.OpenEngineTasks/Embed"
GET_SESSION = "openengine.v1.OpenEngineSessions/GetSession"
UNLOAD_LORA = "openengine.v1.OpenEngineAdapters/UnloadLora"
# Of Generate requests that a check means to outlast what it does meanwhile.
LONG = 500
STOP_TEXT_BYTES = 1024


async def _engine_scope(exchange: Exchange) -> Answers:
    exchange.request.model = ""
    async for scope in exchange.upstream():
        yield scope


def _more_than_the_model(scope: Any, request: Any) -> None:
    if not request.model:
        scope.generation.max_num_sequences += 1


def _more_than_model_info(scope: Any, request: Any) -> None:
    if request.model:
        scope.generation.max_num_sequences += 1


def _revision_ahead(info: Any) -> None:
    info.capability_revision += 1


def _needs_sessions(scope: Any) -> None:
    scope.prerequisites.add(profile="core", requires_profile="sessions", requires_major=1)


def _ghost_model(scope: Any) -> None:
    scope.profiles[0].models.append("listed-but-not-loaded")


def _limit_zero(scope: Any) -> None:
    scope.core.max_stop_text_bytes = 0


def _texts_cut(request: Any) -> None:
    """Stop texts of ASCII and two-byte characters are cut to what the engine takes."""
    for condition in request.stopping.conditions:
        if len(condition.stop_text.encode()) > STOP_TEXT_BYTES:
            condition.stop_text = condition.stop_text.encode()[:STOP_TEXT_BYTES].decode()


async def _limit_excluded(exchange: Exchange) -> Answers:
    most = (await model_facts(exchange)).generation.max_num_sequences
    if exchange.request.sampling.num_sequences == most:
        details = f"num_sequences must be below {most}"
        raise refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", details)
    async for response in exchange.upstream():
        yield response


def _salted(request: Any) -> bool:
    return bool(request.kv.HasField("cache_salt"))


def _logprobs_denied(generation: Any) -> None:
    generation.output_logprobs.Clear()
    generation.output_logprobs.supported = False


def _denied_in_both(message: Any) -> None:
    if message.HasField("generation"):
        _logprobs_denied(message.generation)


def _of_one(scope: Any) -> None:
    scope.incompatible.add(features=["request.cache_salt", "request.cache_salt"])


def _unenforced(scope: Any) -> None:
    scope.incompatible.add(features=["request.cache_salt", "request.prefix_cache_bypass"])


MUTANTS = (
    Mutant(
        "unadvertised-rpc-served",
        "OE-CORE-CAP-007",
        "An RPC answers although its profile is not advertised.",
        {EMBED: answered(lambda _: v1.EmbedResponse())},
    ),
    Mutant(
        "unadvertised-rpc-disabled",
        "OE-CORE-CAP-007",
        "A service that is switched off is registered all the same, and says that it is off.",
        {
            GET_SESSION: refused(
                refusal(grpc.StatusCode.FAILED_PRECONDITION, "ROLE_MISMATCH", "sessions are off")
            )
        },
    ),
    Mutant(
        "unimplemented-while-paused",
        "OE-CORE-CAP-008",
        "Services of a paused engine are taken down instead of being refused.",
        while_paused({UNLOAD_LORA: unimplemented()}),
    ),
    Mutant(
        "unknown-scope-answered",
        "OE-CORE-CAP-009",
        "Capabilities of an unknown model are those of the engine.",
        {CAPABILITIES: forgiven(grpc.StatusCode.NOT_FOUND, _engine_scope)},
    ),
    Mutant(
        "engine-promises-more",
        "OE-CORE-CAP-010",
        "The engine's scope lists what any of its models could do.",
        {CAPABILITIES: edited_for(_more_than_the_model)},
    ),
    Mutant(
        "scope-differs-from-model-info",
        "OE-CORE-CAP-011",
        "Capabilities and ModelInfo read the number of sequences from different settings.",
        {CAPABILITIES: edited_for(_more_than_model_info)},
    ),
    Mutant(
        "engine-info-ahead",
        "OE-CORE-CAP-017",
        "EngineInfo counts a reload that Capabilities do not know of.",
        {ENGINE_INFO: edited(_revision_ahead)},
    ),
    Mutant(
        "combination-of-one",
        "OE-CORE-CAP-019",
        "A combination names one feature twice.",
        {CAPABILITIES: edited(_of_one)},
    ),
    Mutant(
        "combination-not-enforced",
        "OE-CORE-CAP-019",
        "A combination is listed as impossible, and nobody tests for it.",
        {CAPABILITIES: edited(_unenforced)},
    ),
    Mutant(
        "prerequisite-missing",
        "OE-CORE-CAP-020",
        "The engine names a profile that it needs and does not have.",
        {CAPABILITIES: edited(_needs_sessions)},
    ),
    Mutant(
        "profile-of-unserved-model",
        "OE-CORE-CAP-021",
        "A profile lists a model from the configuration that failed to load.",
        {CAPABILITIES: edited(_ghost_model)},
    ),
    Mutant(
        "unknown-limit-zero",
        "OE-CORE-CAP-022",
        "A limit that nobody has set is reported as zero.",
        {CAPABILITIES: edited(_limit_zero)},
    ),
    Mutant(
        "stop-text-cut",
        "OE-CORE-CAP-023",
        "A stop text that is too long is cut to the limit.",
        {GENERATE: repaired(_texts_cut)},
    ),
    Mutant(
        "limit-excluded",
        "OE-CORE-CAP-023",
        "The largest number of sequences is compared with one sign too few.",
        {GENERATE: _limit_excluded},
    ),
    Mutant(
        "salt-unsupported-after-all",
        "OE-CORE-CAP-025",
        "Cache salts are reported, and the build that runs has none.",
        {
            GENERATE: when(
                _salted,
                refused(
                    refusal(
                        grpc.StatusCode.INVALID_ARGUMENT,
                        "UNSUPPORTED_FEATURE",
                        "cache_salt is not supported",
                    )
                ),
            )
        },
    ),
    Mutant(
        "logprobs-denied-but-served",
        "OE-CORE-CAP-025",
        "Log probabilities are reported unsupported, and returned to whoever asks.",
        each((CAPABILITIES, *BOTH_MODEL_INFOS), edited(_denied_in_both)),
    ),
)
