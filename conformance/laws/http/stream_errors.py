"""Laws about an error inside a stream: its envelope, and that the stream then ends as stated."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.laws.http.errors import value_problem
from conformance.laws.http.failed_stream import FAILED, FailedStream, Part, failed_stream
from conformance.laws.http.framing import route_of
from conformance.laws.http.law import Finding, HttpLaw, Ruling
from conformance.laws.http.view import undisturbed
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Route

RESPONSES, TGI = "openai-responses", "tgi-native"


def error_inside(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """The error says what it is, and nothing but the terminator follows it."""
    route = route_of(exchange, declared)
    if route is None or not undisturbed(exchange):
        return None
    failed = failed_stream(exchange, route)
    if failed is None:
        return None
    problem = _message_problem(failed.error, route)
    if problem is not None:
        return Finding(_wanted(failed.error, route), problem, failed.error.number)
    return _end_problem(failed, route) or True


def _wanted(error: Part, route: Route) -> str:
    if error.kind == FAILED:
        return "a response with an error, its code and message"
    if route.stream_envelope is None:
        return "an error with a message"
    more = " with an error_type" if route.contract == TGI else ""
    return f"the envelope {route.stream_envelope.value}{more}"


def _message_problem(error: Part, route: Route) -> str | None:
    if error.kind == FAILED:
        response = error.value.get("response")
        return _failure_problem(response.get("error") if isinstance(response, dict) else None)
    if route.stream_envelope is None:
        return None if _says_something(error.value) else "none"
    problem = value_problem(error.value, route.stream_envelope)
    if problem is None and route.contract == TGI and not _text(error.value.get("error_type")):
        return "no text `error_type`"
    return problem


def _failure_problem(error: Any) -> str | None:
    if not isinstance(error, dict):
        return "no object `error`"
    missing = [name for name in ("code", "message") if not _text(error.get(name))]
    return f"no text `{missing[0]}`" if missing else None


def _says_something(value: dict[str, Any]) -> bool:
    """Whether a message of any envelope that there is has a text."""
    error = value.get("error")
    inner = error if isinstance(error, dict) else {}
    found = (error, inner.get("message"), value.get("message"), value.get("detail"))
    return any(_text(each) for each in found)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _end_problem(failed: FailedStream, route: Route) -> Finding | None:
    """What follows the error: the terminator where the profile says so, and nothing else."""
    stated = route.terminator.after_error if route.terminator is not None else "unknown"
    ends = [part for part in failed.after if part.ends(route)]
    others = [part for part in failed.after if not part.ends(route)]
    if others:
        wanted = "nothing after the error but the terminator"
        return Finding(wanted, f"{len(others)} more messages", others[0].number)
    if failed.error.kind == FAILED:
        return None if not ends else Finding(f"{FAILED} last", "another end", ends[0].number)
    if len(ends) > 1:
        return Finding("one terminator after the error", f"{len(ends)}", ends[1].number)
    if bool(ends) != (stated == "present") and stated != "unknown":
        wanted = "the terminator" if stated == "present" else "no terminator"
        return Finding(f"{wanted} after the error", "none" if not ends else "one")
    if ends and route.contract == RESPONSES and ends[0].kind != FAILED:
        return Finding(f"{FAILED} after the error", ends[0].kind[:60], ends[0].number)
    return None


LAWS = tuple(
    HttpLaw(requirement, error_inside, frozenset({contract}))
    for requirement, contract in (
        ("OE-HTTP-CHAT-035", "openai-chat"),
        ("OE-HTTP-COMP-032", "openai-completions"),
        ("OE-HTTP-RESP-020", RESPONSES),
        ("OE-HTTP-OLLAMA-015", "ollama-native"),
        ("OE-HTTP-TGI-010", TGI),
        ("OE-HTTP-LMS-009", "lmstudio-native"),
    )
)
