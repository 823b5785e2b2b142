"""Reasons to refuse what rides along with a prompt: sessions, cache options, media, adapters."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from conformance.oracle.expectation import (
    INVALID_OR_DISABLED,
    NOT_FOUND,
    Codes,
    Reason,
    broken,
    unknown,
)
from conformance.oracle.limits import Limits
from conformance.wire.declared import Declared
from oe_wire import v1

# Names that begin like this belong to no adapter of anybody.
UNKNOWN_ADAPTER = "oe-conform-no-such-adapter"
MISMATCH: Codes = frozenset({grpc.StatusCode.FAILED_PRECONDITION})
ANY_REFUSAL: Codes = frozenset(grpc.StatusCode) - {grpc.StatusCode.OK}


def role_reasons(request: v1.GenerateRequest, declared: Declared) -> Iterator[Reason]:
    """GEN-032, and whether this role or model serves the request at all."""
    codes = ANY_REFUSAL if declared.legacy else MISMATCH
    session = request.kv.HasField("session")
    if session and not _takes_sessions(declared):
        yield broken("GEN-032", codes)
    elif session:
        yield unknown("KV session")
    elif declared.role == "decode":
        yield broken("GEN-032", codes)
    elif not declared.generates:
        generation = declared.model is not None and declared.model.HasField("generation")
        other_kind = declared.role != "prefill" and not generation and not declared.legacy
        yield broken("GEN-032", codes) if other_kind else unknown("the model or the role")


def _takes_sessions(declared: Declared) -> bool:
    """Whether the engine may have the decode side of a hand-over."""
    if declared.role == "prefill":
        return False
    if not declared.legacy:
        return "kv_handoff" in declared.profiles
    # A v0.1.0 engine tells of a connector, and not which sides of it there are.
    return declared.server_info is None or declared.server_info.HasField("kv_connector")


def kv_reasons(kv: v1.KvOptions, declared: Declared, limits: Limits) -> Iterator[Reason]:
    """GEN-030 for the options of the cache."""
    if kv.bypass_prefix_cache:
        yield from explicit_option(limits.cache_bypass, "prefix cache bypass", declared)
    if kv.HasField("cache_salt"):
        yield from explicit_option(limits.cache_salt, "cache salt", declared)
        if not kv.cache_salt:
            yield unknown("empty cache salt")


def explicit_option(switch: bool | None, what: str, declared: Declared) -> Iterator[Reason]:
    """GEN-030 for one option that was asked for: reported false means refused."""
    if switch is None or (not switch and declared.legacy):
        yield unknown(f"{what} is unreported or the engine is a legacy one")
    elif not switch:
        yield broken("GEN-030")


def media_reasons(request: v1.GenerateRequest, limits: Limits) -> Iterator[Reason]:
    """GEN-027; what becomes of media that the model takes is not the oracle's matter."""
    for item in request.media:
        if item.WhichOneof("source") is None or limits.multimodal is False:
            yield broken("GEN-027")
        else:
            yield unknown("media")


def adapter_reasons(name: str, declared: Declared) -> Iterator[Reason]:
    """GEN-028 for the adapter that a request names, empty for none."""
    if not name:
        return
    unheard = name.startswith(UNKNOWN_ADAPTER)
    if "adapters" not in declared.profiles and not declared.legacy:
        yield broken("GEN-028", INVALID_OR_DISABLED)
    elif not unheard:
        yield unknown("adapter")
    else:
        yield broken("GEN-028", _unknown_adapter_codes(declared))


def _unknown_adapter_codes(declared: Declared) -> Codes:
    model = declared.model if declared.model is not None else v1.ModelInfo()
    if not model.HasField("supports_lora"):
        return NOT_FOUND | INVALID_OR_DISABLED if declared.legacy else NOT_FOUND
    if model.supports_lora:
        return NOT_FOUND
    # Adapters, but not for this model: both conditions hold.
    return INVALID_OR_DISABLED if declared.legacy else NOT_FOUND | INVALID_OR_DISABLED
