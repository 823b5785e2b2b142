"""Checks that an answer is no event stream where none was asked for."""

from __future__ import annotations

from conformance.checks.check import Check
from conformance.checks.http.check import params
from conformance.checks.http.inference import ordinary_body
from conformance.checks.http.probe import HttpProbe
from conformance.http.exchange import describe
from conformance.laws.http.view import is_event_stream
from conformance.model.case import Case

_TOKENS = 16
# How a stream begins whose content type does not say that it is one.
_EVENTS = (b"data:", b"event:")


def _in_one_piece(requirement: str, contract: str) -> Check:
    def in_one_piece(probe: HttpProbe, case: Case) -> None:
        """A plain request, with and without the field."""
        route = probe.route(contract)
        body = ordinary_body(probe, route, tokens=_TOKENS) | dict(case.params)
        exchange = probe.call(route, body)
        if not exchange.ok:
            probe.skip(f"an ordinary request got {describe(exchange)}")
        if is_event_stream(exchange) or exchange.body.startswith(_EVENTS):
            probe.fail("an answer in one piece", "an event stream", exchange)

    return Check(
        requirement,
        in_one_piece,
        params({}, {"stream": False}),
        None,
        "Stream only where the request says so.",
        f"http.one_piece.{contract.removeprefix('openai-')}",
    )


CHECKS = tuple(
    _in_one_piece(requirement, contract)
    for requirement, contract in (
        ("OE-HTTP-CHAT-036", "openai-chat"),
        ("OE-HTTP-COMP-033", "openai-completions"),
        ("OE-HTTP-RESP-021", "openai-responses"),
    )
)
