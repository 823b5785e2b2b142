"""Mutants of the profile testing. Nothing that they leave armed can hit another request."""

from __future__ import annotations

import secrets
from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, refusal, repaired, when
from conformance.mutants.methods import (
    CAPABILITIES,
    CLEAR_FAULTS,
    GENERATE,
    INJECT_FAULT,
    MODEL_INFO,
    RECONFIGURE,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant
from oe_wire import v1
from oe_wire.services import METHODS

__test__ = False


def _any_id(_: Any) -> v1.InjectFaultResponse:
    return v1.InjectFaultResponse(fault_id=f"fault-{secrets.token_hex(8)}")


def _no_kind(request: Any) -> bool:
    return request.kind not in v1.FaultKind.values() or not request.kind


def _wedges(request: Any) -> bool:
    return bool(request.kind == v1.FAULT_KIND_ENGINE_WEDGED)


def _same_id(response: Any) -> None:
    response.fault_id = "fault"


def _for_anyone(request: Any) -> None:
    if request.kind == v1.FAULT_KIND_REQUEST_FAILS:
        request.ClearField("request_id")


def _at_once(request: Any) -> None:
    request.ClearField("after_tokens")


def _for_good(request: Any) -> None:
    request.ClearField("duration_ms")


async def _noted(exchange: Exchange) -> Answers:
    """Faults for single requests are remembered, to be armed again."""
    request = exchange.request
    async for response in exchange.upstream():
        exchange.state["armed"] = True
        if request.kind == v1.FAULT_KIND_REQUEST_FAILS and request.request_id:
            exchange.state.setdefault("faults", []).append(request)
        yield response


async def _armed_again(exchange: Exchange) -> Answers:
    """The list is emptied for the answer, and filled again from a copy."""
    async for response in exchange.upstream():
        for request in exchange.state.pop("faults", []):
            await exchange.ask(METHODS[INJECT_FAULT], request)
        yield response


async def _nothing_to_clear(exchange: Exchange) -> Answers:
    if not exchange.state.pop("armed", False):
        code = grpc.StatusCode.FAILED_PRECONDITION
        raise refusal(code, "ROLE_MISMATCH", "no fault is armed")
    async for response in exchange.upstream():
        yield response


def _one_behind(response: Any) -> None:
    response.capability_revision -= 1


async def _limit_noted(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if exchange.request.HasField("max_num_sequences"):
            exchange.state["most"] = exchange.request.max_num_sequences
        yield response


async def _clamped(exchange: Exchange) -> Answers:
    """Once it was reconfigured, the limit is a cap instead of a rule."""
    most = exchange.state.get("most")
    if most is not None and exchange.request.sampling.num_sequences > most:
        exchange.request.sampling.num_sequences = most
    async for response in exchange.upstream():
        yield response


def _zero_ignored(request: Any) -> None:
    if request.HasField("max_num_sequences") and not request.max_num_sequences:
        request.Clear()


async def _half_done(exchange: Exchange) -> Answers:
    """What comes before the wrong field has taken effect when it is refused."""
    request = exchange.request
    if request.HasField("max_num_sequences") and not request.max_num_sequences:
        exchange.state["flipped"] = not exchange.state.get("flipped", False)
    async for response in exchange.upstream():
        yield response


async def _flipped(exchange: Exchange) -> Answers:
    async for message in exchange.upstream():
        if exchange.state.get("flipped"):
            message.generation.supports_priority = not message.generation.supports_priority
        yield message


MUTANTS = (
    Mutant(
        "any-fault-armed",
        "OE-TEST-001",
        "A fault of no kind is armed, and nothing will ever happen.",
        {INJECT_FAULT: when(_no_kind, answered(_any_id))},
    ),
    Mutant(
        "one-fault-id",
        "OE-TEST-002",
        "Every fault has the same id.",
        {INJECT_FAULT: edited(_same_id)},
    ),
    Mutant(
        "cleared-fault-strikes",
        "OE-TEST-003",
        "The list of faults is emptied, and each request holds a copy of its own.",
        {INJECT_FAULT: _noted, CLEAR_FAULTS: _armed_again},
    ),
    Mutant(
        "nothing-to-clear",
        "OE-TEST-003",
        "Clearing faults fails when none is armed.",
        {INJECT_FAULT: _noted, CLEAR_FAULTS: _nothing_to_clear},
    ),
    Mutant(
        "fault-hits-next",
        "OE-TEST-004",
        "The fault strikes the next request, whatever id it was armed for.",
        {INJECT_FAULT: repaired(_for_anyone)},
    ),
    Mutant(
        "fault-strikes-at-once",
        "OE-TEST-004",
        "The fault strikes before the first token, whatever number was given.",
        {INJECT_FAULT: repaired(_at_once)},
    ),
    Mutant(
        "wedge-pretended",
        "OE-TEST-005",
        "A fault of the whole engine is acknowledged, and the engine goes on.",
        {INJECT_FAULT: when(_wedges, answered(_any_id))},
        # A wedge that never was shows on the probe too.
        frozenset({"OE-CORE-HEALTH-016"}),
    ),
    Mutant(
        "wedge-for-good",
        "OE-TEST-005",
        "The wedge lasts until it is cleared, whatever time was given.",
        {INJECT_FAULT: when(_wedges, repaired(_for_good))},
    ),
    Mutant(
        "pair-one-behind",
        "OE-TEST-006",
        "The answer carries the pair from before the change.",
        {RECONFIGURE: edited(_one_behind)},
    ),
    Mutant(
        "new-limit-clamps",
        "OE-TEST-007",
        "After a reconfiguration the limit cuts requests down instead of refusing them.",
        {RECONFIGURE: _limit_noted, GENERATE: _clamped},
    ),
    Mutant(
        "zero-sequences-ignored",
        "OE-TEST-008",
        "A limit of zero is taken for an absent one.",
        {RECONFIGURE: repaired(_zero_ignored)},
    ),
    Mutant(
        "reconfigured-by-half",
        "OE-TEST-008",
        "A field is changed before the next one is found to be wrong.",
        {RECONFIGURE: _half_done, CAPABILITIES: _flipped, MODEL_INFO: _flipped},
    ),
)
