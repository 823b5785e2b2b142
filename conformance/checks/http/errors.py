"""Checks of how faults of the client are answered."""

from __future__ import annotations

from typing import Any

from conformance.checks.http.check import http_check, params
from conformance.checks.http.inference import (
    context_of,
    limit_field,
    ordinary_body,
    prompt_field,
    prompt_value,
    text_route,
)
from conformance.checks.http.probe import JSON_TYPE, HttpProbe
from conformance.checks.http.shared import describe_status, refused
from conformance.http.exchange import End, Exchange
from conformance.model.case import Case
from conformance.runtimes.profile import Framing

_BAD_JSON = {"cut": b'{"model": ', "words": b"hello", "empty": b"", "list": b"[]", "twice": b"{}{}"}
# Values of the wrong type. `limit` and `prompt` stand for the fields of the API in question.
_WRONG_TYPES: tuple[dict[str, Any], ...] = (
    {"field": "limit", "value": "x"},
    {"field": "temperature", "value": "hot"},
    {"field": "prompt", "value": 5},
)
_OUT_OF_RANGE: tuple[dict[str, Any], ...] = (
    {"field": "temperature", "value": -1},
    {"field": "top_p", "value": 1.5},
    {"field": "limit", "value": -1},
)
_POISON: tuple[dict[str, Any], ...] = (
    {"stop": 5},
    {"prompt": [5, {}, "x"]},
    {"limit": "x"},
    {"temperature": {}},
    {"stop": [None]},
)
_ALIVE_SECONDS = 30.0


def _with(probe: HttpProbe, fields: dict[str, Any], **more: Any) -> Exchange:
    """An ordinary request with some fields changed; None takes one out."""
    route = text_route(probe)
    body = ordinary_body(probe, route)
    names = {"limit": limit_field(route), "prompt": prompt_field(route)}
    for name, value in fields.items():
        body[names.get(name, name)] = value
    return probe.call(route, {k: v for k, v in body.items() if v != "$out"}, **more)


@http_check(
    "OE-HTTP-ERR-002",
    advice="Answer every error of a JSON route in one envelope.",
    table=params({"bad": "json"}, {"bad": "field"}, {"bad": "type"}),
)
def envelope(probe: HttpProbe, case: Case) -> None:
    """A law about every error answer: some that servers usually give."""
    match case.params["bad"]:
        case "json":
            probe.call(text_route(probe), b"{", headers=(JSON_TYPE,))
        case "field":
            _with(probe, {"prompt": "$out"})
        case _:
            _with(probe, {"temperature": "hot"})
    probe.settle()


@http_check(
    "OE-HTTP-ERR-003",
    advice="Answer 400 when the body cannot be parsed.",
    table=params(*({"body": name} for name in _BAD_JSON)),
)
def no_json(probe: HttpProbe, case: Case) -> None:
    """A body that is none."""
    name = str(case.params["body"])
    exchange = probe.call(text_route(probe), _BAD_JSON[name], headers=(JSON_TYPE,))
    refused(probe, exchange, "a body that is no JSON object")


@http_check("OE-HTTP-ERR-004", advice="Check the types of fields.", table=params(*_WRONG_TYPES))
def wrong_type(probe: HttpProbe, case: Case) -> None:
    """A value of another type."""
    field = str(case.params["field"])
    refused(probe, _with(probe, {field: case.params["value"]}), f"{field} of the wrong type")


@http_check("OE-HTTP-ERR-005", advice="Check the ranges of numbers.", table=params(*_OUT_OF_RANGE))
def out_of_range(probe: HttpProbe, case: Case) -> None:
    """A number beyond its range."""
    field, value = str(case.params["field"]), case.params["value"]
    refused(probe, _with(probe, {field: value}), f"{field} {value}")


@http_check("OE-HTTP-ERR-006", advice="Answer 404 for a model that is not served.")
def unknown_model(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """A name that no server has."""
    refused(probe, _with(probe, {"model": "oe-conform-no-such-model"}), "an unknown model")


@http_check("OE-HTTP-ERR-007", advice="Answer 400 for a request without its prompt.")
def missing(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Nothing to answer."""
    refused(probe, _with(probe, {"prompt": "$out"}), "a missing prompt")


@http_check("OE-HTTP-ERR-008", advice="Answer 400 for a conversation without messages.")
def empty(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """A conversation of no messages. An empty string is a prompt, so only lists are empty."""
    if prompt_field(text_route(probe)) != "messages":
        probe.skip("the API has no list of messages")
    refused(probe, _with(probe, {"prompt": []}), "no messages")


@http_check(
    "OE-HTTP-ERR-009",
    advice="Answer 405 for methods that a route lacks.",
    table=params({"method": "GET"}, {"method": "PUT"}),
)
def wrong_method(probe: HttpProbe, case: Case) -> None:
    """A method of another kind."""
    method = str(case.params["method"])
    exchange = probe.call(text_route(probe), method=method)
    if exchange.status != 501:
        refused(probe, exchange, f"the method {method}")


@http_check(
    "OE-HTTP-ERR-010",
    advice="Do not repeat the request in an error.",
    table=params({"kilobytes": 1}, {"kilobytes": 200}),
)
def size(probe: HttpProbe, case: Case) -> None:
    """A law about every error answer: to a small and to a large bad request."""
    filler = "lorem " * (int(case.params["kilobytes"]) * 1024 // 6)
    _with(probe, {"temperature": "hot", "metadata": {"note": filler}})
    probe.settle()


@http_check(
    "OE-HTTP-ERR-011",
    advice="Validate requests before they reach the thread that generates.",
    table=params(*({"poison": number} for number in range(len(_POISON)))),
)
def alive_after(probe: HttpProbe, case: Case) -> None:
    """A bad request, and then a good one."""
    limits = probe.connection.limits
    seconds = probe.seconds(_ALIVE_SECONDS)
    _with(probe, _POISON[int(case.params["poison"])], limits=limits.within(seconds))
    again = _with(probe, {}, limits=limits.within(seconds))
    if not again.ok:
        kind = again.ending.kind
        hung = kind in {End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL}
        actual = "no answer in time" if hung else describe_status(again)
        probe.fail("an ordinary request is served", actual, again)


@http_check("OE-HTTP-ERR-012", advice="Count the prompt's tokens before the answer begins.")
def too_long(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """A prompt that cannot fit."""
    context = context_of(probe)
    if not context:
        probe.skip("the length of the context is not stated (--context-tokens)", too_large=True)
    route = text_route(probe)
    prompt = prompt_value(route, "word " * (context + 64))
    fields = {"prompt": prompt}
    if route.stream is not Framing.NONE:
        fields["stream"] = True
    exchange = _with(probe, fields)
    refused(probe, exchange, "a prompt longer than the context")
