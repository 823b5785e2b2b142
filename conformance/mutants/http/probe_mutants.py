"""Mutants of probes: servers whose health and metrics cost something, or are worth nothing."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from conformance.checks.http.probes_health import CANARY_PROMPT
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.observing import CANARY, METRICS, REQUESTS, RUNNING, TOKENS, add
from conformance.mutants.http.reply import Event, RefusedError, Reply

HEALTH = "/health"


def _drained(ask: Ask, reply: Reply) -> Reply | None:
    """The second of two looks in a row lacks a series."""
    if not _again(ask, METRICS) or not isinstance(reply.body, str):
        return None
    kept = [line for line in reply.body.splitlines() if REQUESTS not in line]
    return Reply(body="\n".join(kept) + "\n", content_type=reply.content_type)


def _again(ask: Ask, path: str) -> bool:
    """Whether this is the second of two looks in a row at the path; a third is a first one."""
    again = ask.path == path == ask.state.get("last")
    ask.state["last"] = "" if again else ask.path
    return again


def _popped(ask: Ask, reply: Reply) -> None:
    if _again(ask, "/v1/models"):
        reply.body = {"object": "list", "data": []}


def _generating_health(ask: Ask, _: Reply) -> None:
    if ask.path == HEALTH:
        add(ask, TOKENS, 1)


def _other_build(ask: Ask, _: Reply) -> Reply | None:
    return Reply(body={"build": "other-2"}) if ask.path == "/version" else None


def _hangs(ask: Ask, _: Reply) -> Reply | None:
    return Reply(stall=True) if CANARY_PROMPT.encode() in ask.body else None


def _uncounted_streams(ask: Ask, reply: Reply) -> None:
    if reply.events is not None:
        reply.events = iter(list(reply.events)) if not _endless(ask) else reply.events
        ask.state[TOKENS] = ask.state.get("counted", 0)
    else:
        ask.state["counted"] = ask.state.get(TOKENS, 0)


def _endless(ask: Ask) -> bool:
    return (ask.json or {}).get("max_tokens") is None or int((ask.json or {})["max_tokens"]) > 64


def _always_failing(ask: Ask, _: Reply) -> Reply | None:
    return RefusedError(503, "no token in time").reply if ask.path == CANARY else None


def _busy(ask: Ask, _: Reply) -> Reply | None:
    waits = ask.path == HEALTH and ask.state.get(RUNNING, 0) > 0
    return Reply(stall=True) if waits else None


def _running_for_ever(ask: Ask, reply: Reply) -> None:
    """What a client leaves in the middle still counts as running."""
    if reply.events is not None and _endless(ask):
        reply.events = _left_running(ask, reply.events)


def _left_running(ask: Ask, events: Iterator[Event]) -> Iterator[Event]:
    try:
        yield from events
    finally:
        add(ask, RUNNING, 1)
        ask.state["left"] = True


def _worked_through(ask: Ask, reply: Reply) -> None:
    """What a client does not wait for still counts as running."""
    if reply.pauses is not None:
        reply.pauses = _left_working(ask, reply.pauses)


def _left_working(ask: Ask, pauses: Generator[float]) -> Generator[float]:
    try:
        yield from pauses
    except GeneratorExit:
        add(ask, RUNNING, 1)
        raise


def _counting_on(ask: Ask) -> None:
    """Each look at the counters finds one token more of what nobody reads."""
    if ask.path == METRICS and ask.state.get("left"):
        add(ask, TOKENS, 1)


MUTANTS = (
    HttpMutant(
        "metrics-drained",
        "OE-HTTP-PROBE-001",
        "Reading the statistics takes them away from the next reader.",
        on_reply=_drained,
    ),
    HttpMutant(
        "list-popped",
        "OE-HTTP-PROBE-001",
        "The list of models is handed out once.",
        on_reply=_popped,
    ),
    HttpMutant(
        "health-generates",
        "OE-HTTP-PROBE-002",
        "Health runs the model, so each look at it costs a token.",
        on_reply=_generating_health,
    ),
    HttpMutant(
        "other-build",
        "OE-HTTP-PROBE-003",
        "The server was upgraded, and nobody told the operator.",
        on_reply=_other_build,
    ),
    HttpMutant(
        "health-while-hanging",
        "OE-HTTP-PROBE-004",
        "Health says 200 while inference hangs.",
        on_reply=_hangs,
        also=frozenset({"OE-HTTP-PROBE-006"}),
    ),
    HttpMutant(
        "streams-uncounted",
        "OE-HTTP-PROBE-005",
        "Tokens of streams are in no counter.",
        on_reply=_uncounted_streams,
    ),
    HttpMutant(
        "canary-fails",
        "OE-HTTP-PROBE-006",
        "The generating probe fails while requests are answered.",
        on_reply=_always_failing,
    ),
    HttpMutant(
        "generates-for-nobody",
        "OE-HTTP-CANCEL-001",
        "A generation goes on when its client has left.",
        on_ask=_counting_on,
        on_reply=_running_for_ever,
        also=frozenset({"OE-HTTP-PROBE-002"}),
    ),
    HttpMutant(
        "generates-whole-for-nobody",
        "OE-HTTP-CANCEL-002",
        "An answer in one piece is worked on to its end when its client has left.",
        on_reply=_worked_through,
    ),
    HttpMutant(
        "health-behind-inference",
        "OE-HTTP-PROBE-007",
        "Health waits for the thread that generates.",
        on_reply=_busy,
    ),
)
