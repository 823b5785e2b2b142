"""The declared limits and switches of one model in a flat form; None = not reported."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from conformance.wire.declared import FALLBACK_REQUEST_BYTES, FALLBACK_REQUEST_ID_BYTES, Declared
from oe_wire import v1

# Token ids to send when no output of the engine has been seen: every tokenizer assigns numbers
# this small, and special tokens mostly lie below 10.
FALLBACK_TOKENS = tuple(range(10, 26))
# No vocabulary reaches this token id: the largest known ones hold a quarter of a million.
NO_TOKEN = 1 << 30
# Prompt and output of this many tokens together are taken for legal when no window is reported.
SAFE_WINDOW = 512
# Stop conditions taken for legal when no limit is reported; the OpenAI API has allowed four.
SAFE_STOP_CONDITIONS = 4
SAFE_STOP_TEXT_BYTES = 16
# Request ids up to here are legal everywhere: UUIDs in any spelling fit.
SAFE_REQUEST_ID_BYTES = 64
# min_tokens up to here lies below any default of max_tokens.
SAFE_MIN_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers in the unit that the name says; switches True, False or None."""

    text_input: bool | None
    token_input: bool | None
    max_context_tokens: int | None
    max_output_tokens: int | None
    max_sequences: int | None
    max_request_id_bytes: int | None
    max_request_bytes: int
    max_stop_conditions: int | None
    max_stop_text_bytes: int | None
    accepts_zero_max_tokens: bool
    stop_in_output: bool | None
    cache_salt: bool | None
    cache_bypass: bool | None
    multimodal: bool | None
    tokens: tuple[int, ...]


def limits_of(declared: Declared) -> Limits:
    """Read the discovery answers; a present zero counts as unreported where zero makes no sense."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    scope = declared.capabilities if declared.capabilities is not None else v1.Capabilities()
    core, generation = scope.core, model.generation
    text, tokens = _inputs(model, declared)
    return Limits(
        text_input=text,
        token_input=tokens,
        max_context_tokens=_number(model, "max_context_length"),
        max_output_tokens=_number(model, "max_output_tokens"),
        max_sequences=_number(generation, "max_num_sequences"),
        max_request_id_bytes=_number(core, "max_request_id_bytes")
        or (None if declared.legacy else FALLBACK_REQUEST_ID_BYTES),
        max_request_bytes=_number(core, "max_request_bytes") or FALLBACK_REQUEST_BYTES,
        max_stop_conditions=_number(core, "max_stop_conditions"),
        max_stop_text_bytes=_number(core, "max_stop_text_bytes"),
        accepts_zero_max_tokens=core.accepts_zero_max_tokens,
        stop_in_output=_switch(generation, "supports_stop_in_output"),
        cache_salt=_switch(generation, "supports_cache_salt"),
        cache_bypass=_switch(generation, "supports_prefix_cache_bypass"),
        multimodal=_switch(model, "supports_multimodal"),
        tokens=declared.known_tokens or FALLBACK_TOKENS,
    )


def window(limits: Limits) -> int:
    """Tokens that prompt and output may surely have together."""
    return limits.max_context_tokens or SAFE_WINDOW


def _inputs(model: v1.ModelInfo, declared: Declared) -> tuple[bool | None, bool | None]:
    text = _switch(model, "supports_text_input")
    tokens = _switch(model, "supports_token_ids_input")
    if text is None and tokens is None and declared.legacy:
        # v0.1.0 engines need not report either; token ids are the safer guess once some are known.
        return (None, True) if declared.known_tokens else (True, None)
    return text, tokens


def _number(message: Message, name: str) -> int | None:
    value = getattr(message, name)
    return int(value) if message.HasField(name) and value else None


def _switch(message: Message, name: str) -> bool | None:
    return bool(getattr(message, name)) if message.HasField(name) else None
