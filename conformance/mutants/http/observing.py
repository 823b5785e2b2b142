"""What the right server says about itself: counters of requests and tokens, and a canary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.reply import Event, Reply

PREFIX = "fixture:"
REQUESTS, TOKENS = "requests_total", "generation_tokens_total"
RUNNING = "requests_running"
METRICS, CANARY = "/metrics", "/health_generate"
# An answer in one piece that is asked to have so many tokens takes time, as on any real server;
# only checks of clients that leave ask for as many, and they do not wait for all of it.
_LASTING_TOKENS = 512
_SECONDS_OF_A_TOKEN = 0.05


def add(ask: Ask, name: str, number: float) -> None:
    """Add to one of the server's counters."""
    ask.state[name] = ask.state.get(name, 0) + number


def counting(answer: Callable[[Ask], Reply]) -> Callable[[Ask], Reply]:
    """An inference route whose requests and tokens are counted; each message of a stream counts
    as a token, which is close enough for a counter.
    """

    def counted(ask: Ask) -> Reply:
        add(ask, REQUESTS, 1)
        reply = answer(ask)
        if reply.events is None and _lasting(ask) and reply.status == 200:
            reply.pauses = _worked(ask, _tokens_of(reply))
        elif reply.events is None:
            add(ask, TOKENS, _tokens_of(reply))
        else:
            reply.events = _counted(ask, reply.events)
        return reply

    return counted


def metrics(ask: Ask) -> Reply:
    """The counters as Prometheus reads them."""
    lines = []
    for name, kind in ((REQUESTS, "counter"), (TOKENS, "counter"), (RUNNING, "gauge")):
        value = ask.state.get(name, 0)
        lines += [f"# TYPE {PREFIX}{name} {kind}", f'{PREFIX}{name}{{model="scripted"}} {value}']
    return Reply(body="\n".join(lines) + "\n", content_type="text/plain; version=0.0.4")


def canary(ask: Ask) -> Reply:
    """A probe that generates one token."""
    add(ask, TOKENS, 1)
    return Reply(body={"status": "generating"})


def _tokens_of(reply: Reply) -> int:
    body = reply.body if isinstance(reply.body, dict) else {}
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return next(
        (counts[name] for name in ("completion_tokens", "output_tokens") if name in counts), 1
    )


def _lasting(ask: Ask) -> bool:
    asked = ask.json or {}
    limits = [asked.get(name) for name in ("max_tokens", "max_output_tokens")]
    return any(isinstance(limit, int) and limit >= _LASTING_TOKENS for limit in limits)


def _worked(ask: Ask, tokens: int) -> Generator[float]:
    """The time that the tokens of an answer in one piece take; each is counted after it."""
    add(ask, RUNNING, 1)
    try:
        for _ in range(tokens):
            yield _SECONDS_OF_A_TOKEN
            add(ask, TOKENS, 1)
    finally:
        add(ask, RUNNING, -1)


def _counted(ask: Ask, events: Iterator[Event]) -> Iterator[Event]:
    add(ask, RUNNING, 1)
    try:
        for event in events:
            add(ask, TOKENS, 1)
            yield event
    finally:
        add(ask, RUNNING, -1)
