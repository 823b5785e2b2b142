"""Behaviours that go by whether generation is paused, as the proxy has seen it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.mutants.behaviours import forward
from conformance.mutants.methods import PAUSE, RESUME
from conformance.mutants.mutant import Answers, Behaviour, Exchange


async def _pauses(exchange: Exchange) -> Answers:
    async for state in exchange.upstream():
        exchange.state["paused"] = True
        exchange.state["pauses"] = pauses(exchange) + 1
        yield state


async def _resumes(exchange: Exchange) -> Answers:
    async for state in exchange.upstream():
        exchange.state["paused"] = False
        yield state


def paused(exchange: Exchange) -> bool:
    """Whether the last pause through this proxy is still in force."""
    return bool(exchange.state.get("paused"))


def pauses(exchange: Exchange) -> int:
    """How many pauses have been granted through this proxy."""
    return int(exchange.state.get("pauses", 0))


def while_paused(changes: Mapping[str, Behaviour]) -> dict[str, Behaviour]:
    """The behaviours during a pause; at other times everything is forwarded."""

    def guarded(behaviour: Behaviour) -> Behaviour:
        def chosen(exchange: Exchange) -> Answers:
            return (behaviour if paused(exchange) else forward)(exchange)

        return chosen

    guards = {name: guarded(behaviour) for name, behaviour in changes.items()}
    return {PAUSE: _pauses, RESUME: _resumes} | guards
