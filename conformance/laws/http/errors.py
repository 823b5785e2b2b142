"""Laws about error answers: their envelope and their size."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.laws.http.framing import route_of
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Envelope, Framing

MOST_BYTES = 64 * 1024


@http_law("OE-HTTP-ERR-002")
def envelope(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """An error looks as the profile says."""
    route = route_of(exchange, declared)
    if route is None or route.unary is not Framing.JSON or not exchange.whole:
        return None
    # A method that the route does not have never reaches the code that makes envelopes.
    if not is_error(exchange) or exchange.request.method != route.method:
        return None
    wanted = route.envelope or declared.runtime.envelope
    problem = envelope_problem(exchange, wanted)
    return True if problem is None else Finding(f"the envelope {wanted.value}", problem)


@http_law("OE-HTTP-ERR-010")
def size(exchange: Exchange, declared: HttpDeclared) -> Ruling:  # noqa: ARG001
    """An error does not repeat what it was sent."""
    if not is_error(exchange):
        return None
    length = len(exchange.body)
    return True if length <= MOST_BYTES else Finding("at most 64 KiB", f"{length} bytes")


def is_error(exchange: Exchange) -> bool:
    """Whether the status is 4xx or 5xx."""
    return exchange.status is not None and exchange.status >= 400


def envelope_problem(exchange: Exchange, wanted: Envelope) -> str | None:
    """What is wrong with an error body; None when it is as wanted. Quotes nothing of it."""
    if wanted is Envelope.TEXT:
        return None if exchange.body.strip() else "an empty body"
    return value_problem(exchange.json, wanted)


def value_problem(value: Any, wanted: Envelope) -> str | None:
    """What is wrong with an error object of an envelope in JSON; None when it is as wanted."""
    if not isinstance(value, dict):
        return "no JSON object"
    match wanted:
        case Envelope.TEXT:
            return "a JSON object"
        case Envelope.OPENAI | Envelope.OPENAI_INT_CODE:
            return _nested(value.get("error"), wanted)
        case Envelope.FLAT:
            return _flat(value)
        case Envelope.ERROR_STRING:
            return _text(value, "error")
        case Envelope.DETAIL:
            found = value.get("detail")
            return None if isinstance(found, list) and found else _text(value, "detail")


def _nested(error: Any, wanted: Envelope) -> str | None:
    if not isinstance(error, dict):
        return "no object `error`"
    problem = _text(error, "message") or _text(error, "type")
    if problem is not None:
        return problem
    code = error.get("code")
    if wanted is Envelope.OPENAI_INT_CODE:
        whole = isinstance(code, int) and not isinstance(code, bool)
        return None if whole else "a `code` that is no number"
    if "param" not in error or "code" not in error:
        return "no `param` or no `code`"
    if not isinstance(error["param"], str | None):
        return "a `param` that is no text and not null"
    return None if isinstance(code, str | None) else "a `code` that is no text and not null"


def _flat(value: dict[str, Any]) -> str | None:
    problem = _text(value, "message") or _text(value, "type")
    return problem or (None if "code" in value else "no `code`")


def _text(value: dict[str, Any], name: str) -> str | None:
    found = value.get(name)
    return None if isinstance(found, str) and found else f"no text `{name}`"


LAWS = (envelope, size)
