"""Checks of Text Generation Inference's native routes, one for each form of an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.check import HttpTable, http_check, params
from conformance.checks.http.native import routes_of
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import describe_status
from conformance.checks.http.text_api import OPEN_TOKENS, scripted_or_open, shown
from conformance.http.exchange import Exchange, describe
from conformance.laws.http.tgi import CONTRACT, details_of, messages_of, text_of
from conformance.model.case import Case
from conformance.runtimes.script import LOOP, RUN, Script

STREAM, WHOLE = params({"stream": True}), params({"stream": False})
BOTH = params({"stream": True}, {"stream": False})


def ask(probe: HttpProbe, prompt: str, *, stream: bool, **parameters: Any) -> Exchange:
    """A greedy request of the route that has this form; skips the case without one."""
    routes = routes_of(probe.declared, CONTRACT, stream=stream)
    if not routes:
        probe.skip("no route for this form of an answer")
    chosen = {"details": True, "do_sample": False, "max_new_tokens": OPEN_TOKENS, **parameters}
    return probe.call(routes[0], {"inputs": prompt, "parameters": chosen})


def answered(probe: HttpProbe, prompt: str, *, stream: bool, **parameters: Any) -> Exchange:
    """The same; skips the case when there is no answer."""
    exchange = ask(probe, prompt, stream=stream, **parameters)
    if text_of(exchange) is None:
        probe.skip(f"an ordinary request got {describe(exchange)}")
    return exchange


def _seen(requirement: str, advice: str, table: HttpTable, script: Script = RUN) -> Check:
    """A check whose rule is a law."""

    def seen_law(probe: HttpProbe, case: Case) -> None:
        stream = bool(case.params["stream"])
        ask(probe, scripted_or_open(probe, script), stream=stream, max_new_tokens=16)
        probe.settle()

    return Check(requirement, seen_law, table, None, advice, "http.tgi.seen_law")


LAW_CHECKS = (
    _seen("OE-HTTP-TGI-001", "Answer with an object that has generated_text.", WHOLE),
    _seen("OE-HTTP-TGI-002", "Send one whole token in each message, and count them.", STREAM),
    _seen("OE-HTTP-TGI-003", "Send the whole text in the last message only.", STREAM),
    _seen("OE-HTTP-TGI-004", "Use the three reasons.", BOTH),
    _seen("OE-HTTP-TGI-005", "Make the text of the tokens that were sent.", STREAM),
)


def _reason(probe: HttpProbe, exchange: Exchange, wanted: str) -> None:
    details = details_of(exchange)
    if details is None:
        probe.skip("the answer has no details")
    found = details.get("finish_reason")
    if found != wanted:
        probe.fail(f"finish_reason {wanted}", f"{found!r:.20}", exchange)


@http_check("OE-HTTP-TGI-006", advice="Count tokens against max_new_tokens.", table=BOTH)
def cut(probe: HttpProbe, case: Case) -> None:
    """The limit ends it."""
    prompt, most = scripted_or_open(probe, LOOP), 5
    exchange = answered(probe, prompt, stream=bool(case.params["stream"]), max_new_tokens=most)
    messages = messages_of(exchange)
    counted = (details_of(exchange) or {}).get("generated_tokens")
    count = len(messages) if messages is not None else counted
    for number in (count, counted):
        if isinstance(number, int) and number > most:
            probe.fail(f"at most {most} tokens", f"{number}", exchange)
    _reason(probe, exchange, "length")


@http_check("OE-HTTP-TGI-007", advice="Report the end token as eos_token.", table=BOTH)
def own_end(probe: HttpProbe, case: Case) -> None:
    """The model ends it."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known when it ends")
    exchange = answered(probe, RUN.prompt, stream=bool(case.params["stream"]))
    _reason(probe, exchange, "eos_token")


@http_check("OE-HTTP-TGI-008", advice="Make both of one generation.")
def stream_equals_unary(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Two ways, one text."""
    prompt = scripted_or_open(probe, RUN)
    parts = answered(probe, prompt, stream=True)
    first, second = (text_of(answered(probe, prompt, stream=False)) for _ in range(2))
    text = text_of(parts)
    if first != second:
        probe.skip("greedy answers of this target do not repeat")
    if text != first:
        actual = f"{shown(text or '')} as a stream, {shown(first or '')} in one piece"
        probe.fail("the same text", actual, parts)


_BAD: dict[str, Callable[[dict[str, Any]], None]] = {
    "limit": lambda body: body["parameters"].update(max_new_tokens=0),
    "inputs": lambda body: body.pop("inputs"),
}


@http_check(
    "OE-HTTP-TGI-009",
    advice="Answer 422 with the type validation.",
    table=params(*({"bad": name} for name in _BAD)),
)
def validated(probe: HttpProbe, case: Case) -> None:
    """A fault of the client."""
    routes = routes_of(probe.declared, CONTRACT, stream=False)
    if not routes:
        probe.skip("no route for an answer in one piece")
    body: dict[str, Any] = {"inputs": RUN.prompt, "parameters": {"max_new_tokens": 4}}
    _BAD[str(case.params["bad"])](body)
    exchange = probe.call(routes[0], body)
    if exchange.status is None:
        probe.skip("no response at all")
    if exchange.status != 422:
        probe.fail("status 422", describe_status(exchange), exchange)
    # Bodies that cannot be read at all are refused by the framework, in words of its own.
    value = exchange.json
    if case.params["bad"] == "limit" and isinstance(value, dict):
        found = value.get("error_type")
        if found != "validation":
            probe.fail("error_type validation", f"{found!r:.20}", exchange)
