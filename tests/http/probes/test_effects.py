from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import pytest

from conformance.checks.base import Spending
from conformance.checks.http.probe import HttpProbe
from conformance.checks.violation import NotJudged
from conformance.errors import HarnessError
from conformance.http.client import HttpConnection
from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import fixture_profile, options_for
from conformance.mutants.http.matrix import BUDGET
from conformance.mutants.http.mutant import Change, HttpMutant
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import serving
from conformance.runner.http_session import open_http_session
from conformance.runner.run import run_http
from conformance.runtimes.declared import HARMLESS, HttpDeclared
from conformance.runtimes.identity import BUILD, MODEL, observe
from conformance.runtimes.profile import Effect, Route


def _mutant(change: Change) -> HttpMutant:
    return HttpMutant("test", "OE-HTTP-PROBE-001", "", on_reply=change)


@contextmanager
def _probe(origin: str, allowed: frozenset[Effect]) -> Iterator[HttpProbe]:
    declared = HttpDeclared(fixture_profile(), allowed=allowed)
    with HttpConnection(HttpTarget(parse_origin(origin))) as connection:
        spending = Spending(10, 100)
        yield HttpProbe("OE-HTTP-PROBE-006", connection, declared, spending, threading.Event())


def _route(effect: Effect) -> Route:
    return Route("x", "GET", "/health", effect)


@pytest.mark.parametrize("effect", [Effect.CONSUMPTIVE, Effect.INFERENCE_CANARY])
def test_only_what_is_allowed(effect: Effect) -> None:
    """A call with an effect happens when that effect is allowed, and not otherwise."""
    asked: list[str] = []

    def noted(ask: Ask, reply: Reply) -> None:
        asked.append(ask.path)

    with serving(_mutant(noted)) as server:
        with _probe(server.origin, HARMLESS) as probe, pytest.raises(NotJudged, match="--allow"):
            probe.call(_route(effect))
        assert asked == []
        with _probe(server.origin, HARMLESS | {effect}) as probe:
            assert probe.call(_route(effect)).ok
    assert asked == ["/health"]


def test_a_change_of_state_is_never_called() -> None:
    """Not even when somebody put it among the allowed effects."""
    with (
        serving() as server,
        _probe(server.origin, frozenset(Effect)) as probe,
        pytest.raises(HarnessError, match="never called"),
    ):
        probe.call(_route(Effect.STATE_CHANGE))


def test_a_run_without_allowance_skips_the_canary() -> None:
    """The row about the canary is judged only where the operator allowed its effect."""
    with serving() as server:
        options = options_for(server.origin, budget=BUDGET, ids=("OE-HTTP-PROBE-006",))
        allowed = run_http(options)
        without = run_http(replace(options, allowed=HARMLESS))
    assert allowed.judgements[0].requirement.startswith("OE-HTTP")
    statuses = [
        next(j.status for j in report.judgements if j.requirement == "OE-HTTP-PROBE-006")
        for report in (allowed, without)
    ]
    assert statuses == [Status.PASS, Status.BLOCKED]


def _all_hang(ask: Ask, reply: Reply) -> Reply | None:
    return Reply(stall=True) if ask.method == "POST" else None


def _honest(ask: Ask, reply: Reply) -> Reply | None:
    if ask.method == "POST":
        return Reply(stall=True)
    return Reply(503, {"status": "stuck"}) if ask.path == "/health" else None


@pytest.mark.parametrize(("change", "found"), [(_all_hang, Status.FAIL), (_honest, Status.BLOCKED)])
def test_health_while_inference_hangs(change: Change, found: Status) -> None:
    """Health that says 200 while nothing is answered is caught within the limit; health that
    says so is no breach.
    """
    with serving(_mutant(change)) as server:
        options = options_for(server.origin, budget=BUDGET, ids=("OE-HTTP-PROBE-004",))
        limits = options.limits.within(0.5)
        # Health that is 503 for ever is waited for so long.
        report = run_http(replace(options, limits=limits, ready_timeout=2.0))
    judged = {each.requirement: each.status for each in report.judgements}
    assert judged["OE-HTTP-PROBE-004"] is found


def test_identity_is_only_what_was_seen() -> None:
    """Build and model are reported when the server named them; a server that names neither
    leaves both unreported, whatever the operator configured.
    """

    def silent(ask: Ask, reply: Reply) -> Reply | None:
        return Reply(body={}) if ask.path in {"/version", "/v1/models"} else None

    declared = HttpDeclared(fixture_profile(), model_name="configured")
    with serving() as server, HttpConnection(HttpTarget(parse_origin(server.origin))) as one:
        assert observe(one, declared).observed == {BUILD: "fixture-1", MODEL: "scripted"}
    with (
        serving(_mutant(silent)) as mute,
        HttpConnection(HttpTarget(parse_origin(mute.origin))) as one,
    ):
        seen = observe(one, declared)
    assert seen.observed == MappingProxyType({})
    assert seen.model_name == "configured"


def test_live_evidence_does_not_rewrite_the_profile() -> None:
    """What a run observes is beside the profile, whose digest and capabilities stay as they are."""
    profile = fixture_profile()
    with serving() as server:
        session = open_http_session(options_for(server.origin, ids=("OE-HTTP-PROBE-003",)))
    assert session.declared.runtime is profile
    assert session.declared.observed
