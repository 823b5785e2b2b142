"""Advertised limits: what is exactly at one is taken, what is above it is refused.

Rows of their own judge what lies above most limits (GEN-002, 010, 012, 015, 022 and 025, LOAD-042,
LORA-010); here are the other sides and the limits that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import grpc

from conformance.checks.check import check
from conformance.checks.core.judging import BUSY, outcome, send_cut, skip_uncertain
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle.limits import limits_of
from conformance.strategies import simple_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# A larger message or text costs more than the answer is worth.
MAX_SENT_BYTES = 64 << 20
MAX_SENT_COUNT = 4096
# gRPC libraries refuse a message that is too large below the engine.
TOO_LARGE = (
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.INVALID_ARGUMENT,
)
PAD = "oe-conform-pad"
Build = Callable[[v1.GenerateRequest, int], None]


def _texts(request: v1.GenerateRequest, size: int) -> None:
    request.stopping.conditions.add(stop_text="\u00b6" * (size // 2) + "~" * (size % 2))


def _conditions(request: v1.GenerateRequest, count: int) -> None:
    for at in range(count):
        # Two rare characters: the output is to end by its length.
        text = chr(0x2500 + at % 64) + chr(0x2580 + at // 64)
        request.stopping.conditions.add(stop_text=text)


def _sequences(request: v1.GenerateRequest, count: int) -> None:
    request.sampling.num_sequences = count
    if count > 1:
        request.sampling.temperature = 1.0


def _top_n(request: v1.GenerateRequest, count: int) -> None:
    request.response.return_output_logprobs = True
    request.response.output_candidates.top_n = count


def _padded(request: v1.GenerateRequest, size: int) -> None:
    """Fill `extra`, which is ignored, until the message has `size` bytes, or one or two less
    where the length prefixes jump.
    """
    request.extra[PAD] = ""
    room = size - request.ByteSize()
    request.extra[PAD] = "x" * max(0, room)
    while request.ByteSize() > size and room > 0:
        room -= request.ByteSize() - size
        request.extra[PAD] = "x" * room


def _reported(declared: Declared) -> Iterator[tuple[str, int, int, Build]]:
    """Name, value, most that is worth sending, and how a request reaches it."""
    limits = limits_of(declared)
    scope = v1.Capabilities() if declared.capabilities is None else declared.capabilities
    info = v1.ModelInfo() if declared.model is None else declared.model
    offer = info.generation.output_logprobs
    top_n = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N in offer.candidate_selection_modes
    for name, value, most, build in (
        ("max_stop_text_bytes", limits.max_stop_text_bytes, 1 << 20, _texts),
        ("max_stop_conditions", limits.max_stop_conditions, MAX_SENT_COUNT, _conditions),
        ("max_num_sequences", limits.max_sequences, 64, _sequences),
        ("max_top_n", offer.max_top_n if top_n and offer.supported else None, 1 << 20, _top_n),
        ("max_request_bytes", scope.core.max_request_bytes, MAX_SENT_BYTES, _padded),
    ):
        if value:
            yield name, value, most, build


# Limits whose other side no other row judges, and how far above it is surely above.
SURELY_MORE = {"max_stop_text_bytes": 1, "max_request_bytes": 4}


def _boundaries(declared: Declared) -> Iterable[Case]:
    cases: list[Case] = []
    for name, value, most, _build in _reported(declared):
        if value >= most:
            continue
        cases.append(Case(params={"limit": name, "value": value, "over": False}))
        if name in SURELY_MORE:
            cases.append(Case(params={"limit": name, "value": value, "over": True}))
    return cases or [Case()]


@check(
    "OE-CORE-CAP-023",
    table=_boundaries,
    advice="Let validation compare with the very numbers that Capabilities report, and refuse only "
    "what is greater.",
)
def limits_honoured(probe: Probe, case: Case) -> None:
    """A request at a limit is taken; one above it is refused."""
    if not case.params:
        skip_uncertain(probe)
    name, value = case.params["limit"], case.params["value"]
    build = {each: make for each, _, _, make in _reported(probe.declared)}[name]
    # The id comes first: its length counts in the size of the message.
    request = probe.prepared(Case(simple_request(probe.declared)))
    build(request, value + (SURELY_MORE[name] if case.params["over"] else 0))
    call = send_cut(probe, case, request)
    if not case.params["over"]:
        _taken(probe, call, f"{name} = {value}")
        return
    codes = TOO_LARGE if name == "max_request_bytes" else (grpc.StatusCode.INVALID_ARGUMENT,)
    if call.events and call.ending.code in codes and call.undisturbed:
        probe.skip("messages came before the refusal, which is not this row's matter")
    if call.accepted:
        probe.fail(f"a refusal above {name} = {value}", outcome(call), call)
    probe.expect_rejected(call, *codes, because=f"{name} is {value}")


def _taken(probe: Probe, call: Transcript, what: str) -> None:
    if call.rejected and call.ending.code in BUSY:
        probe.skip(f"the engine was busy: {call.ending.code.name}")
    if call.rejected:
        probe.fail(f"acceptance of a request at {what}", outcome(call), call)
