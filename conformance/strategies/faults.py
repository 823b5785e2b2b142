"""Valid requests with exactly one thing made illegal, each tied to the row that forbids it."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from conformance.model.case import Case
from conformance.oracle import expect
from conformance.oracle.limits import Limits, limits_of
from conformance.strategies.fault import UINT32_MAX, Fault, assigned, fault
from conformance.strategies.option_faults import option_faults
from conformance.strategies.requests import requests
from conformance.strategies.simple import simple_request, token_ids
from conformance.wire.declared import Declared
from oe_wire import v1

UNKNOWN_MODEL = "oe-conform/no-such-model"
# Above this a request that is too long costs more to send than the answer is worth.
MAX_SENT_TOKENS = 65536


def single_faults(declared: Declared) -> st.SearchStrategy[Case]:
    """Valid requests of this engine with one fault each."""
    return st.builds(_faulty, requests(declared), st.sampled_from(faults(declared))).map(Case)


def faulty(declared: Declared, rule: str) -> st.SearchStrategy[Case]:
    """Valid requests of this engine with one fault of `rule`; empty cases where it has none."""
    wrongs = faults(declared, rule)
    if not wrongs:
        return st.just(Case())
    return st.builds(_faulty, requests(declared), st.sampled_from(wrongs)).map(Case)


def _faulty(base: v1.GenerateRequest, wrong: Fault) -> v1.GenerateRequest:
    request = v1.GenerateRequest()
    request.CopyFrom(base)
    wrong.apply(request)
    return request


def with_fault(declared: Declared, base: v1.GenerateRequest, rule: str) -> list[Case]:
    """`base` with each fault of `rule` that this engine's declarations make possible."""
    return [Case(_faulty(base, wrong)) for wrong in faults(declared, rule)]


def faults(declared: Declared, rule: str | None = None) -> tuple[Fault, ...]:
    """Every fault, or every one of `rule`, that the declarations of this engine make certain.

    Without those that need an option which the engine excludes together with the simplest input.
    """
    limits, base = limits_of(declared), simple_request(declared)
    possible = (
        *_identity_faults(limits),
        *_input_faults(declared, limits),
        *_sampling_faults(limits),
        *_stopping_faults(declared, limits),
        *option_faults(declared, limits),
    )
    return tuple(
        wrong
        for wrong in possible
        if rule in {None, wrong.rule}
        and "OE-CORE-CAP-019" not in expect(_faulty(base, wrong), (), declared).broken
    )


def _identity_faults(limits: Limits) -> list[Fault]:
    found = [
        assigned("GEN-001", "request_id", ""),
        assigned("GEN-005", "model", ""),
        assigned("GEN-005", "model", UNKNOWN_MODEL),
    ]
    longest = limits.max_request_id_bytes
    if longest is not None and longest < MAX_SENT_TOKENS:
        found.append(assigned("GEN-002", "request_id", "x" * (longest + 1)))
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

    found = [fault("GEN-006", "no input", none)]
    if limits.token_input:
        found.append(fault("GEN-007", "empty token_ids", empty))
    if limits.text_input is False:
        found.append(assigned("GEN-008", "prompt", "a"))
    if limits.token_input is False:
        some = v1.TokenIds(ids=token_ids(declared, 1))
        found.append(fault("GEN-008", "token_ids", lambda r: r.token_ids.CopyFrom(some)))
    if limits.token_input and long_prompt_possible(declared):
        found.append(fault("GEN-010", "prompt over the window", too_long))
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
    found = [assigned("GEN-012", "sampling.num_sequences", 0)]
    if limits.max_sequences is not None and limits.max_sequences < UINT32_MAX:
        found.append(assigned("GEN-012", "sampling.num_sequences", limits.max_sequences + 1))
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
        found += [assigned(row, f"sampling.{field}", value) for value in illegal]
    return found


def _stopping_faults(declared: Declared, limits: Limits) -> list[Fault]:
    def more_least_than_most(request: v1.GenerateRequest) -> None:
        request.stopping.min_tokens = request.stopping.max_tokens + 1

    def zero(request: v1.GenerateRequest) -> None:
        request.stopping.max_tokens = 0
        request.stopping.ClearField("min_tokens")

    found = [
        fault("GEN-014", "min_tokens over max_tokens", more_least_than_most),
        _stops("no variant", v1.StopCondition()),
        _stops("empty stop_text", v1.StopCondition(stop_text="")),
    ]
    if declared.legacy:
        return found
    if not limits.accepts_zero_max_tokens:
        found.append(fault("GEN-013", "max_tokens=0", zero))
    most = limits.max_output_tokens
    if most is not None and most < UINT32_MAX and limits.max_context_tokens is not None:
        found.append(assigned("GEN-015", "stopping.max_tokens", most + 1))
    stops = limits.max_stop_conditions
    if stops is not None and stops < MAX_SENT_TOKENS:
        some = [v1.StopCondition(stop_text=chr(ord("a") + i % 26)) for i in range(stops + 1)]
        found.append(_stops("too many conditions", *some, row="GEN-022"))
    return found


def _stops(name: str, *conditions: v1.StopCondition, row: str = "GEN-021") -> Fault:
    def apply(request: v1.GenerateRequest) -> None:
        request.stopping.ClearField("conditions")
        request.stopping.conditions.extend(conditions)

    return fault(row, name, apply)
