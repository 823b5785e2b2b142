"""The expected answer to a GenerateRequest."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.oracle.expectation import (
    NOT_FOUND,
    Expectation,
    Reason,
    broken,
    collect,
    either,
    unknown,
)
from conformance.oracle.extras import adapter_reasons, kv_reasons, media_reasons, role_reasons
from conformance.oracle.features import incompatible
from conformance.oracle.guides import guided_reasons
from conformance.oracle.limits import SAFE_REQUEST_ID_BYTES, Limits, limits_of, window
from conformance.oracle.metadata import metadata_reasons
from conformance.oracle.options import response_reasons, stopping_reasons
from conformance.oracle.sampling import sampling_reasons
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from oe_wire import v1

# What a tokenizer adds at most to a text: begin and end marks, and a prefix space.
EXTRA_TOKENS = 4


def expect(request: v1.GenerateRequest, metadata: Metadata, declared: Declared) -> Expectation:
    """What a right engine with these declarations does with this call, by the rows GEN and META.

    Only the call itself counts: an id that is active, or an engine that is full or paused, is up
    to the caller. What lies outside the rows (guides in notations of one implementation, loaded
    adapters, media, KV sessions) makes the answer unknown rather than guessed.
    """
    limits = limits_of(declared)
    return collect(_reasons(request, metadata, declared, limits))


def _reasons(
    request: v1.GenerateRequest, metadata: Metadata, declared: Declared, limits: Limits
) -> Iterator[Reason]:
    yield from role_reasons(request, declared)
    yield from _identity(request, declared, limits)
    yield from _input(request, limits)
    yield from _window(request, declared, limits)
    yield from sampling_reasons(request.sampling, limits)
    yield from stopping_reasons(request.stopping, declared, limits)
    yield from response_reasons(request.response, declared, limits)
    yield from _options(request, declared, limits)
    yield from metadata_reasons(request, metadata, declared)
    if incompatible(request, declared, metadata):
        yield broken("CAP-019")
    if request.ByteSize() > limits.max_request_bytes // 2:
        yield unknown("size near or above max_request_bytes")


def _identity(request: v1.GenerateRequest, declared: Declared, limits: Limits) -> Iterator[Reason]:
    size = len(request.request_id.encode())
    if not request.request_id:
        yield broken("GEN-001")
    elif limits.max_request_id_bytes is not None and size > limits.max_request_id_bytes:
        yield broken("GEN-002")
    elif size > (limits.max_request_id_bytes or SAFE_REQUEST_ID_BYTES):
        yield unknown("length limit of request ids")
    elif not request.request_id.isprintable():
        yield unknown("request id with characters that are not printable")
    if not request.model:
        yield broken("GEN-005")
    elif request.model not in _served(declared):
        maybe = request.model in _perhaps_served(declared)
        yield unknown("another model") if maybe else broken("GEN-005", NOT_FOUND)


def _served(declared: Declared) -> set[str]:
    names = {declared.model_name}
    if declared.model is not None:
        names |= {declared.model.served_model_name, *declared.model.served_model_aliases}
    return names - {""}


def _perhaps_served(declared: Declared) -> set[str]:
    names = set(getattr(declared.engine, "supported_models", ()))
    if declared.model is not None:
        names.add(declared.model.model_id)
    if declared.engine_scope is not None:
        names.update(name for profile in declared.engine_scope.profiles for name in profile.models)
    return names


def _input(request: v1.GenerateRequest, limits: Limits) -> Iterator[Reason]:
    match request.WhichOneof("input"):
        case "prompt":
            yield from _allowed(limits.text_input, "text input")
            if not request.prompt:
                yield unknown("empty prompt text")
        case "token_ids":
            yield from _allowed(limits.token_input, "token id input")
            if not request.token_ids.ids:
                yield broken("GEN-007")
            elif not set(request.token_ids.ids) <= set(limits.tokens):
                yield unknown("token ids that may lie outside the vocabulary")
        case _:
            yield broken("GEN-006")


def _allowed(switch: bool | None, what: str) -> Iterator[Reason]:
    if switch is None:
        yield unknown(f"{what} is unreported")
    elif not switch:
        yield broken("GEN-008")


def _window(request: v1.GenerateRequest, declared: Declared, limits: Limits) -> Iterator[Reason]:
    exact = request.WhichOneof("input") == "token_ids"
    prompt = len(request.token_ids.ids) if exact else len(request.prompt.encode()) + EXTRA_TOKENS
    room = window(limits)
    # For a text the count is an upper bound, so it shows that the window may be exceeded.
    reported = limits.max_context_tokens is not None and not declared.legacy
    if prompt > room:
        known = exact and reported
        yield broken("GEN-010") if known else unknown("prompt length against the window")
    elif prompt == room:
        yield unknown("a prompt that fills the window")
    elif prompt + request.stopping.max_tokens > room:
        yield either("GEN-011") if reported else unknown("prompt and output against the window")


def _options(request: v1.GenerateRequest, declared: Declared, limits: Limits) -> Iterator[Reason]:
    yield from kv_reasons(request.kv, declared, limits)
    if request.HasField("guided"):
        yield from guided_reasons(request, declared)
    yield from media_reasons(request, limits)
    yield from adapter_reasons(request.lora_name, declared)
