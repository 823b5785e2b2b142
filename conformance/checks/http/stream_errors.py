"""Checks of errors inside a stream. No server can be made to fail there by a request that is good
for all: the runtime's profile or the operator's settings state one that is known to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.bodies import body_for
from conformance.checks.http.native import route_in, routes_of
from conformance.checks.http.probe import HttpProbe
from conformance.http.exchange import End, Exchange, describe
from conformance.laws.http.failed_stream import FAILED, failed_stream, parts_of
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Route
from conformance.runtimes.stream_error import TABLE

_TOKENS = 64
# The client's own limits ended the call: whether the server would have told of an error is open.
_GIVEN_UP = frozenset(
    {End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL, End.LIMIT_BODY, End.LIMIT_CHUNKS}
)


def told(probe: HttpProbe, route: Route) -> None:
    """Fail inside the stream; the law judges what is told of it. That something is, is this."""
    fields = probe.declared.failing(route.name)
    if fields is None:
        probe.skip(f"nothing is known to fail inside a stream here; state [{TABLE}.{route.name}]")
    body = body_for(probe, route, tokens=_TOKENS, stream=True)
    exchange = probe.call(route, body | dict(fields))
    if exchange.status != 200:
        probe.skip(f"what is stated to fail inside a stream got {describe(exchange)}")
    if failed_stream(exchange, route) is None:
        if exchange.ending.kind in _GIVEN_UP or _finished(exchange, route):
            probe.skip("what is stated to fail inside a stream did not fail")
        probe.fail("an error message before the end of the stream", "none", exchange)
    probe.settle()


def _finished(exchange: Exchange, route: Route) -> bool:
    """Whether a stream says that its answer is finished: then nothing has failed in it."""
    parts = parts_of(exchange, route)
    if route.contract in {"openai-chat", "openai-completions"}:
        return any(_reason(part.value) for part in parts)
    if route.terminator is not None and route.terminator.kind != "none":
        return any(part.ends(route) and part.kind != FAILED for part in parts)
    return any(part.value.get("generated_text") is not None for part in parts)


def _reason(value: Mapping[str, Any]) -> bool:
    choices = value.get("choices")
    found = choices if isinstance(choices, list) else []
    return any(isinstance(each, dict) and each.get("finish_reason") for each in found)


def _told_of(requirement: str, contract: str) -> Check:
    def table(declared: HttpDeclared) -> list[Case]:
        routes = routes_of(declared, contract, stream=True)
        return [Case(params={"route": route.name}) for route in routes]

    def told_of_error(probe: HttpProbe, case: Case) -> None:
        told(probe, route_in(probe, case))

    advice = "Tell of an error in the stream, in its envelope, and end the stream."
    return Check(
        requirement, told_of_error, table, None, advice, "http.stream_errors.told_of_error"
    )


CHECKS = tuple(
    _told_of(requirement, contract)
    for requirement, contract in (
        ("OE-HTTP-CHAT-035", "openai-chat"),
        ("OE-HTTP-COMP-032", "openai-completions"),
        ("OE-HTTP-RESP-020", "openai-responses"),
        ("OE-HTTP-OLLAMA-015", "ollama-native"),
        ("OE-HTTP-TGI-010", "tgi-native"),
        ("OE-HTTP-LMS-009", "lmstudio-native"),
    )
)
