"""Valid requests with exactly one thing made illegal, each tied to the row that forbids it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from conformance.model.case import Case
from conformance.oracle.limits import Limits, limits_of
from conformance.strategies.requests import requests
from conformance.strategies.simple import token_ids
from conformance.wire.declared import Declared
from oe_wire import v1

UNKNOWN_MODEL = "oe-conform/no-such-model"
UNKNOWN_ADAPTER = "oe-conform-no-such-adapter"
# Above this a request that is too long costs more to send than the answer is worth.
MAX_SENT_TOKENS = 65536
UINT32_MAX = 2**32 - 1

Change = Callable[[v1.GenerateRequest], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One illegal thing: the requirement that forbids it, a short name, and how to make it so.

    `apply` also removes what would break a second rule together with it.
    """

    rule: str
    name: str
    apply: Change


def single_faults(declared: Declared) -> st.SearchStrategy[Case]:
    """Valid requests of this engine with one fault each."""
    return st.builds(_faulty, requests(declared), st.sampled_from(faults(declared))).map(Case)


def _faulty(base: v1.GenerateRequest, fault: Fault) -> v1.GenerateRequest:
    request = v1.GenerateRequest()
    request.CopyFrom(base)
    fault.apply(request)
    return request


def with_fault(declared: Declared, base: v1.GenerateRequest, rule: str) -> list[Case]:
    """`base` with each fault of `rule` that this engine's declarations make possible."""
    return [Case(_faulty(base, fault)) for fault in faults(declared) if fault.rule == rule]


def faults(declared: Declared) -> tuple[Fault, ...]:
    """Every fault that the declarations of this engine make certain."""
    limits = limits_of(declared)
    return (
        *_identity_faults(limits),
        *_input_faults(declared, limits),
        *_sampling_faults(limits),
        *_stopping_faults(declared, limits),
        *_option_faults(declared, limits),
    )


def _fault(row: str, name: str, apply: Change) -> Fault:
    return Fault(f"OE-CORE-{row}", name, apply)


def _set(row: str, path: str, value: object) -> Fault:
    """A fault that only assigns one field."""
    *parents, leaf = path.split(".")

    def apply(request: v1.GenerateRequest) -> None:
        target: object = request
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, leaf, value)

    return _fault(row, f"{path}={value}" if not isinstance(value, str) else path, apply)


def _identity_faults(limits: Limits) -> list[Fault]:
    found = [
        _set("GEN-001", "request_id", ""),
        _set("GEN-005", "model", ""),
        _set("GEN-005", "model", UNKNOWN_MODEL),
    ]
    longest = limits.max_request_id_bytes
    if longest is not None and longest < MAX_SENT_TOKENS:
        found.append(_set("GEN-002", "request_id", "x" * (longest + 1)))
    return found


def _input_faults(declared: Declared, limits: Limits) -> list[Fault]:
    def none(request: v1.GenerateRequest) -> None:
        request.ClearField("prompt")
        request.ClearField("token_ids")

    def empty(request: v1.GenerateRequest) -> None:
        request.token_ids.CopyFrom(v1.TokenIds())

    def too_long(request: v1.GenerateRequest) -> None:
        count = (limits.max_context_tokens or 0) + 1
        request.token_ids.CopyFrom(v1.TokenIds(ids=token_ids(declared, count)))

    found = [_fault("GEN-006", "no input", none)]
    if limits.token_input:
        found.append(_fault("GEN-007", "empty token_ids", empty))
    if limits.text_input is False:
        found.append(_set("GEN-008", "prompt", "a"))
    if limits.token_input is False:
        some = v1.TokenIds(ids=token_ids(declared, 1))
        found.append(_fault("GEN-008", "token_ids", lambda r: r.token_ids.CopyFrom(some)))
    if limits.token_input and long_prompt_possible(declared):
        found.append(_fault("GEN-010", "prompt over the window", too_long))
    return found


def long_prompt_possible(declared: Declared) -> bool:
    """Whether a prompt of token ids as long as the window is reported and cheap enough to send."""
    limits = limits_of(declared)
    # A token id takes at most five bytes on the wire.
    affordable = min(MAX_SENT_TOKENS, limits.max_request_bytes // 10)
    longest = limits.max_context_tokens
    return longest is not None and longest <= affordable and not declared.legacy


def _sampling_faults(limits: Limits) -> list[Fault]:
    nan, inf = math.nan, math.inf
    found = [_set("GEN-012", "sampling.num_sequences", 0)]
    if limits.max_sequences is not None and limits.max_sequences < UINT32_MAX:
        found.append(_set("GEN-012", "sampling.num_sequences", limits.max_sequences + 1))
    values: dict[tuple[str, str], tuple[float, ...]] = {
        ("GEN-016", "temperature"): (-0.5, nan, inf, -inf),
        ("GEN-017", "top_p"): (0.0, -0.1, 1.1, nan, inf),
        ("GEN-018", "top_k"): (-2, -(2**31)),
        ("GEN-019", "min_p"): (-0.1, 1.1, nan, inf),
        ("GEN-020", "repetition_penalty"): (0.0, -1.0, nan, inf),
        ("GEN-020", "frequency_penalty"): (nan, inf, -inf),
        ("GEN-020", "presence_penalty"): (nan, inf, -inf),
    }
    for (row, field), illegal in values.items():
        found += [_set(row, f"sampling.{field}", value) for value in illegal]
    return found


def _stopping_faults(declared: Declared, limits: Limits) -> list[Fault]:
    def more_least_than_most(request: v1.GenerateRequest) -> None:
        request.stopping.min_tokens = request.stopping.max_tokens + 1

    def zero(request: v1.GenerateRequest) -> None:
        request.stopping.max_tokens = 0
        request.stopping.ClearField("min_tokens")

    found = [
        _fault("GEN-014", "min_tokens over max_tokens", more_least_than_most),
        _stops("no variant", v1.StopCondition()),
        _stops("empty stop_text", v1.StopCondition(stop_text="")),
    ]
    if declared.legacy:
        return found
    if not limits.accepts_zero_max_tokens:
        found.append(_fault("GEN-013", "max_tokens=0", zero))
    most = limits.max_output_tokens
    if most is not None and most < UINT32_MAX and limits.max_context_tokens is not None:
        found.append(_set("GEN-015", "stopping.max_tokens", most + 1))
    stops = limits.max_stop_conditions
    if stops is not None and stops < MAX_SENT_TOKENS:
        some = [v1.StopCondition(stop_text=chr(ord("a") + i % 26)) for i in range(stops + 1)]
        found.append(_stops("too many conditions", *some, row="GEN-022"))
    return found


def _stops(name: str, *conditions: v1.StopCondition, row: str = "GEN-021") -> Fault:
    def apply(request: v1.GenerateRequest) -> None:
        request.stopping.ClearField("conditions")
        request.stopping.conditions.extend(conditions)

    return _fault(row, name, apply)


def _option_faults(declared: Declared, limits: Limits) -> list[Fault]:
    def guided(request: v1.GenerateRequest) -> None:
        request.guided.CopyFrom(v1.GuidedDecoding())

    def media(request: v1.GenerateRequest) -> None:
        request.media.append(v1.MediaItem(modality=v1.MODALITY_IMAGE))

    def candidates(request: v1.GenerateRequest) -> None:
        request.response.return_output_logprobs = True
        request.response.output_candidates.CopyFrom(v1.CandidateTokenSelection())

    found = [_fault("GEN-023", "no guide", guided), _fault("GEN-027", "no source", media)]
    model = declared.model if declared.model is not None else v1.ModelInfo()
    if model.generation.output_logprobs.supported:
        found.append(_fault("GEN-025", "no selection", candidates))
    if declared.legacy:
        return found
    if "adapters" not in declared.profiles:
        found.append(_set("GEN-028", "lora_name", UNKNOWN_ADAPTER))
    if limits.stop_in_output is False:
        found.append(_set("GEN-030", "stopping.include_stop_in_output", value=True))
    if limits.cache_bypass is False:
        found.append(_set("GEN-030", "kv.bypass_prefix_cache", value=True))
    if limits.cache_salt is False:
        found.append(_set("GEN-030", "kv.cache_salt", "salt"))
    return found
