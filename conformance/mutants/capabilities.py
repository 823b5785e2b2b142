"""Mutants of GetCapabilities: profiles, submessages, revisions and notices."""

from __future__ import annotations

from typing import Any

from conformance.mutants.behaviours import edited, edited_for
from conformance.mutants.methods import CAPABILITIES, ENGINE_INFO, each
from conformance.mutants.mutant import Answers, Exchange, Mutant
from oe_wire import v1


def _without_core(scope: Any) -> None:
    others = [item for item in scope.profiles if item.name != "core"]
    del scope.profiles[:]
    scope.profiles.extend(others)


def _capital_name(scope: Any) -> None:
    scope.profiles.add(name="Fast-Path", major=1)


def _draft_major(scope: Any) -> None:
    scope.profiles.add(name="com.example.fast_path", major=0, minor=3)


def _listed_twice(scope: Any) -> None:
    scope.profiles.add().CopyFrom(scope.profiles[0])


def _unbacked(scope: Any) -> None:
    if "sessions" not in {item.name for item in scope.profiles}:
        scope.sessions.SetInParent()


def _core_missing(scope: Any, request: Any) -> None:
    if not request.model:
        scope.ClearField("core")


def _revision_zero(message: Any) -> None:
    message.capability_revision = 0


async def _volatile(exchange: Exchange) -> Answers:
    """A switch of the engine scope shows what the engine does at the moment."""
    exchange.state["calls"] = exchange.state.get("calls", 0) + 1
    async for scope in exchange.upstream():
        if not exchange.request.model and exchange.state["calls"] % 2:
            scope.core.deterministic_seed = False
        yield scope


def _no_notice(scope: Any) -> None:
    del scope.change_notices[:]


def _unbacked_notice(scope: Any) -> None:
    scope.change_notices.append(v1.CAPABILITY_CHANGE_NOTICE_RUNTIME_EVENT)


MUTANTS = (
    Mutant(
        "core-not-listed",
        "OE-CORE-CAP-001",
        "Core is taken for granted and left out of the profiles.",
        {CAPABILITIES: edited(_without_core)},
        # Every other profile needs it.
        frozenset({"OE-CORE-CAP-020"}),
    ),
    Mutant(
        "profile-name-capitalised",
        "OE-CORE-CAP-002",
        "An own profile is named as it is called in the documentation.",
        {CAPABILITIES: edited(_capital_name)},
    ),
    Mutant(
        "draft-major-zero",
        "OE-CORE-CAP-003",
        "A draft is advertised as version 0.3.",
        {CAPABILITIES: edited(_draft_major)},
    ),
    Mutant(
        "profile-listed-twice",
        "OE-CORE-CAP-004",
        "A profile is registered by two modules.",
        {CAPABILITIES: edited(_listed_twice)},
    ),
    Mutant(
        "submessage-without-profile",
        "OE-CORE-CAP-005",
        "The details of sessions are filled in, and the profile is switched off.",
        {CAPABILITIES: edited(_unbacked)},
    ),
    Mutant(
        "core-submessage-missing",
        "OE-CORE-CAP-006",
        "The answer for the whole engine leaves the details of core to the models.",
        {CAPABILITIES: edited_for(_core_missing)},
        # The abort targets are listed there and nowhere else.
        frozenset({"OE-CORE-ABORT-011"}),
    ),
    Mutant(
        "revision-zero",
        "OE-CORE-CAP-012",
        "Revisions are counted from zero.",
        each((CAPABILITIES, ENGINE_INFO), edited(_revision_zero)),
        # It stays at zero, while the engine's other answers count.
        frozenset({"OE-CORE-CAP-014", "OE-CORE-CAP-017", "OE-TEST-006"}),
    ),
    Mutant(
        "capabilities-volatile",
        "OE-CORE-CAP-013",
        "Capabilities change with the engine's load, under the same revision.",
        {CAPABILITIES: _volatile},
        # Whoever reads twice sees two contents.
        frozenset({"OE-CORE-CAP-018", "OE-CORE-CAP-024"}),
    ),
    Mutant(
        "no-change-notice",
        "OE-CORE-CAP-015",
        "Nothing says how a change is noticed.",
        {CAPABILITIES: edited(_no_notice)},
    ),
    Mutant(
        "notice-without-profile",
        "OE-CORE-CAP-015",
        "Changes are to be noticed on a stream that the engine does not serve.",
        {CAPABILITIES: edited(_unbacked_notice)},
        # What is to be noticed there never comes.
        frozenset({"OE-CORE-CAP-016"}),
    ),
)
