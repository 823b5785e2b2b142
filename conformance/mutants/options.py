"""Mutants that drop, clamp or misread options of a request instead of refusing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import (
    edited,
    forward,
    model_facts,
    recoded,
    refusal,
    refused,
    repaired,
    served_model,
    when,
)
from conformance.mutants.methods import BOTH_MODEL_INFOS, CAPABILITIES, GENERATE, each
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant, Refused
from conformance.oracle.limits import NO_TOKEN
from oe_wire import v1
from oe_wire.services import METHODS

LARGE_BYTES = 1 << 20
INVALID = grpc.StatusCode.INVALID_ARGUMENT


async def _first_stops(exchange: Exchange) -> Answers:
    if "stops" not in exchange.state:
        request = v1.GetCapabilitiesRequest(model=await served_model(exchange))
        scope = await exchange.ask(METHODS[CAPABILITIES], request)
        exchange.state["stops"] = scope.core.max_stop_conditions
    del exchange.request.stopping.conditions[exchange.state["stops"] :]
    async for response in forward(exchange):
        yield response


async def _clamp_top_n(exchange: Exchange) -> Answers:
    most = (await model_facts(exchange)).generation.output_logprobs.max_top_n
    response_options = exchange.request.response
    for name in ("output_candidates", "prompt_candidates"):
        selection = getattr(response_options, name)
        if selection.WhichOneof("selection") == "top_n":
            selection.top_n = min(selection.top_n, most)
    async for response in forward(exchange):
        yield response


def _no_selection(request: Any) -> None:
    for name in ("output_candidates", "prompt_candidates"):
        if getattr(request.response, name).WhichOneof("selection") is None:
            request.response.ClearField(name)


def _without_flag(request: Any) -> None:
    for which in ("output", "prompt"):
        if not getattr(request.response, f"return_{which}_logprobs"):
            request.response.ClearField(f"{which}_candidates")


def _no_media(request: Any) -> None:
    del request.media[:]


def _base_model(request: Any) -> None:
    request.ClearField("lora_name")


def _has_hints(request: Any) -> bool:
    """Not in a message whose size alone is a reason to refuse it."""
    return bool(request.extra.fields) and request.ByteSize() < LARGE_BYTES


def _hot(request: Any) -> None:
    """Keys of extra are passed on as options of the sampler, and reset what was set before."""
    if request.extra.fields:
        request.sampling.temperature = 2.0
        request.sampling.ClearField("seed")
        request.sampling.ClearField("top_k")
        request.sampling.ClearField("top_p")
        request.sampling.ClearField("min_p")


def _denied(flag: str, change: Callable[[Any], None] | None) -> dict[str, Behaviour]:
    """The flag is reported false everywhere; `change` is what happens to a request."""
    told = each(
        (*BOTH_MODEL_INFOS, CAPABILITIES),
        edited(lambda message: setattr(message.generation, flag, False)),
    )
    return told if change is None else {**told, GENERATE: repaired(change)}


def _no_bypass(request: Any) -> None:
    request.kv.ClearField("bypass_prefix_cache")


def _no_stop_shown(request: Any) -> None:
    request.stopping.ClearField("include_stop_in_output")


def _says_false(request: Any) -> bool:
    return bool(request.kv.HasField("bypass_prefix_cache") and not request.kv.bypass_prefix_cache)


def _no_session(request: Any) -> None:
    request.kv.ClearField("session")


def _index_error(refused_call: Refused, request: Any) -> Refused:
    ids = [*request.token_ids.ids, *(stop.stop_token_id for stop in request.stopping.conditions)]
    if refused_call.code is not INVALID or not any(token >= NO_TOKEN for token in ids):
        return refused_call
    return Refused(grpc.StatusCode.OUT_OF_RANGE, "index out of range in self")


MUTANTS = (
    Mutant(
        "stops-cut-to-limit",
        "OE-CORE-GEN-022",
        "Only as many stop conditions as fit are looked at.",
        {GENERATE: _first_stops},
    ),
    Mutant(
        "top-n-clamped",
        "OE-CORE-GEN-025",
        "More candidates than possible are lowered to what is possible.",
        {GENERATE: _clamp_top_n},
        # Fewer candidates than were asked for.
        frozenset({"OE-CORE-STREAM-022"}),
    ),
    Mutant(
        "selection-missing-ignored",
        "OE-CORE-GEN-025",
        "A candidate selection without a variant selects nothing.",
        {GENERATE: repaired(_no_selection)},
    ),
    Mutant(
        "candidates-ignored",
        "OE-CORE-GEN-026",
        "Candidates are looked at only when log probabilities are returned.",
        {GENERATE: repaired(_without_flag)},
    ),
    Mutant(
        "media-dropped",
        "OE-CORE-GEN-027",
        "A text model answers the text and never sees the image.",
        {GENERATE: repaired(_no_media)},
    ),
    Mutant(
        "adapter-replaced-by-base",
        "OE-CORE-GEN-028",
        "Where the adapter is not found the base model answers.",
        {GENERATE: repaired(_base_model)},
    ),
    Mutant(
        "unknown-hint-refused",
        "OE-CORE-GEN-029",
        "extra is validated against the keys that this engine knows.",
        {
            GENERATE: when(
                _has_hints,
                refused(refusal(INVALID, "INVALID_ARGUMENT", "unknown key in extra")),
            )
        },
    ),
    Mutant(
        "hints-become-options",
        "OE-CORE-GEN-029",
        "Every key of extra is passed on to the sampler.",
        {GENERATE: repaired(_hot)},
    ),
    Mutant(
        "denied-bypass-ignored",
        "OE-CORE-GEN-030",
        "An engine that cannot bypass its cache takes the option and uses the cache.",
        _denied("supports_prefix_cache_bypass", _no_bypass),
    ),
    Mutant(
        "denied-stop-ignored",
        "OE-CORE-GEN-030",
        "An engine that cannot show the stop takes the option and cuts it off.",
        _denied("supports_stop_in_output", _no_stop_shown),
        # What was asked for and accepted is not shown.
        frozenset({"OE-CORE-STREAM-016"}),
    ),
    Mutant(
        "salt-not-described",
        "OE-CORE-GEN-030",
        "Salts work and are reported as not supported.",
        _denied("supports_cache_salt", None),
    ),
    Mutant(
        "explicit-false-refused",
        "OE-CORE-GEN-031",
        "The presence of the option is taken for the wish, so false is refused.",
        {
            GENERATE: when(
                _says_false,
                refused(refusal(INVALID, "UNSUPPORTED_FEATURE", "bypass is not supported")),
            )
        },
    ),
    Mutant(
        "session-ignored",
        "OE-CORE-GEN-032",
        "An engine without hand-over computes the prompt itself, whatever session is named.",
        {GENERATE: repaired(_no_session)},
    ),
    Mutant(
        "vocabulary-as-range",
        "OE-CORE-ERR-003",
        "A token outside the vocabulary raises an index error, which has a status of its own.",
        {GENERATE: recoded(_index_error)},
    ),
)
