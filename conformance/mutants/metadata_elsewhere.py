"""Mutants of metadata beyond plain Generate: sessions of turns, and sessions of KV blocks."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import edited, refusal
from conformance.mutants.beside import RIGHT
from conformance.mutants.methods import CAPABILITIES, GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.oracle.metadata import TARGET_RANK
from oe_wire import v1

TURN = "openengine.v1.OpenEngineSessions/GenerateTurn"
# An engine with sessions that is right.
SESSIONS = next(mutant.behaviour for mutant in RIGHT if mutant.name == "sessions")


async def _unread(exchange: Exchange) -> Answers:
    exchange.metadata = ()
    async for response in SESSIONS[TURN](exchange):
        yield response


def _decodes(scope: Any) -> None:
    scope.kv.handoff.roles.append(v1.KV_HANDOFF_ROLE_DECODE)
    scope.kv.handoff.transfer_backends.append("none")


async def _any_rank(exchange: Exchange) -> Answers:
    """A decode side that knows no session, and serves a request all the same when the rank of its
    metadata is another one than the session's.
    """
    request = exchange.request
    if request.kv.HasField("session") and dict(exchange.metadata).get(TARGET_RANK):
        if (TARGET_RANK, str(request.kv.session.dp_rank)) in exchange.metadata:
            details = "kv.session is not known"
            raise refusal(grpc.StatusCode.NOT_FOUND, "KV_SESSION_NOT_FOUND", details)
        request.kv.ClearField("session")
    async for response in exchange.upstream():
        yield response


MUTANTS = (
    Mutant(
        "session-rank-unchecked",
        "OE-CORE-META-005",
        "The rank of the metadata wins over that of the KV session.",
        {CAPABILITIES: edited(_decodes), GENERATE: _any_rank},
        # Only a profile kv_handoff would explain the capability, and the engine has none.
        frozenset({"OE-CORE-CAP-005"}),
    ),
    Mutant(
        "turns-ignore-metadata",
        "OE-CORE-META-011",
        "Turns of sessions are read by code that knows no metadata.",
        {**SESSIONS, TURN: _unread},
    ),
)
