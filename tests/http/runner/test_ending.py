"""A target that a check ends, and what other checks have seen of it before."""

from __future__ import annotations

from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.reply import RefusedError, Reply
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

CHUNK, NO_USAGE, ALIVE = "OE-HTTP-CHAT-002", "OE-HTTP-CHAT-009", "OE-HTTP-ERR-011"


def _ending(ask: Ask, reply: Reply) -> Reply | None:
    """Chunks are misnamed where stream_options is empty; a stop value of the wrong type is the
    last request that is served.
    """
    asked = ask.json or {}
    if asked and ask.state.get("over"):
        return RefusedError(503, "over").reply
    if asked.get("stop") == 5:
        ask.state["over"] = True
    if asked.get("stream_options") == {} and reply.events is not None:
        events = list(reply.events)
        for event in events:
            if isinstance(event.data, dict):
                event.data["object"] = "chat.completion"
        reply.events = iter(events)
    return None


def test_breaches_are_replayed_before_the_target_is_ended() -> None:
    """A law that only another check's call breaks fails, and is not called flaky."""
    with serving(HttpMutant("ending", ALIVE, "A bad value ends it.", on_reply=_ending)) as server:
        report = run_http(options_for(server.origin, ids=(CHUNK, NO_USAGE, ALIVE)))
    status = {each.requirement: each.status for each in report.judgements}
    assert status[ALIVE] is Status.FAIL
    assert status[CHUNK] is Status.FAIL
