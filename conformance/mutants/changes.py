"""Mutants of what changes Capabilities and how the change is noticed."""

from __future__ import annotations

from typing import Any

from conformance.mutants.behaviours import edited
from conformance.mutants.methods import CAPABILITIES, ENGINE_INFO, GENERATE, WATCH_LOAD, each
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.pausing import while_paused
from oe_wire import v1

# Tokens that only a check asks for which means to keep the engine busy.
LONG = 500
PAIR = ("configuration_epoch", "capability_revision")


async def _revision_frozen(exchange: Exchange) -> Answers:
    async for message in exchange.upstream():
        first = exchange.state.setdefault("revision", message.capability_revision)
        message.capability_revision = first
        yield message


async def _stream_pair_frozen(exchange: Exchange) -> Answers:
    first: tuple[int, int] | None = None
    async for response in exchange.upstream():
        first = first or (response.configuration_epoch, response.capability_revision)
        for name, number in zip(PAIR, first, strict=True):
            setattr(response, name, number)
        yield response


def _reconnect_listed(scope: Any) -> None:
    if v1.CAPABILITY_CHANGE_NOTICE_RECONNECT not in scope.change_notices:
        scope.change_notices.append(v1.CAPABILITY_CHANGE_NOTICE_RECONNECT)


def _promises_withdrawn(scope: Any) -> None:
    scope.core.deterministic_seed = False


async def _counted(exchange: Exchange) -> Answers:
    """Long requests are counted while they run."""
    weight = int(exchange.request.stopping.max_tokens >= LONG)
    exchange.state["running"] = exchange.state.get("running", 0) + weight
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        exchange.state["running"] -= weight


async def _load_shown(exchange: Exchange) -> Answers:
    async for scope in exchange.upstream():
        if exchange.state.get("running"):
            scope.core.response_stall_timeout_ms = 5000
        yield scope


MUTANTS = (
    Mutant(
        "revision-stands-still",
        "OE-CORE-CAP-014",
        "What is legal changes, and the revision that was read at the start stays.",
        each((CAPABILITIES, ENGINE_INFO), _revision_frozen),
        # The revision that the reconfiguration answers is not the one that Capabilities tell.
        frozenset({"OE-TEST-006"}),
    ),
    Mutant(
        "watch-keeps-old-pair",
        "OE-CORE-CAP-016",
        "A load stream carries the revision at which it was opened to its end.",
        {WATCH_LOAD: _stream_pair_frozen},
        frozenset({"OE-LOAD-046"}),
    ),
    Mutant(
        "reconnect-not-given",
        "OE-CORE-CAP-016",
        "Clients are told to wait for a reconnect that never comes.",
        {CAPABILITIES: edited(_reconnect_listed)},
    ),
    Mutant(
        "paused-promises-less",
        "OE-CORE-CAP-018",
        "What a paused engine can't do at the moment is left out of Capabilities.",
        while_paused({CAPABILITIES: edited(_promises_withdrawn)}),
    ),
    Mutant(
        "load-in-capabilities",
        "OE-CORE-CAP-024",
        "A time limit adapts to the load, and Capabilities show its value of the moment.",
        {GENERATE: _counted, CAPABILITIES: _load_shown},
        # The content changes while the engine is busy, under the same revision.
        frozenset({"OE-CORE-CAP-013", "OE-CORE-CAP-018"}),
    ),
)
