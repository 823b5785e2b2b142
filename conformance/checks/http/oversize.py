"""Checks of native routes with a prompt that is far too long. What an error looks like, and how
large it may be, are rules of every route.
"""

from __future__ import annotations

from conformance.checks.check import Check
from conformance.checks.http.bodies import body_for
from conformance.checks.http.inference import context_of
from conformance.checks.http.native import each_route, route_in
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import describe_status
from conformance.http.exchange import Exchange
from conformance.model.case import Case
from conformance.runtimes.profile import Framing

# Where nobody says how long the context is: 52,000 words, 256 KiB, which servers still read.
_WORDS = 52_000
_BEYOND = 64
_TOO_LARGE = 413


def refused_or_cut(probe: HttpProbe, case: Case) -> None:
    """The status, and what a refusal says."""
    exchange = _asked(probe, case)
    status = exchange.status or 0
    if not 200 <= status < 300 and not 400 <= status < 500:
        probe.fail("an answer, or a 4xx status", describe_status(exchange), exchange)


def refused_as_invalid(probe: HttpProbe, case: Case) -> None:
    """Only with a stated context it is known that a prompt is too long."""
    if not context_of(probe):
        probe.skip("the length of the context is not stated (--context-tokens)", too_large=True)
    exchange = _asked(probe, case)
    if exchange.status == _TOO_LARGE:
        return  # the body itself was refused, before anything read it
    if exchange.status != 422:
        probe.fail("status 422", describe_status(exchange), exchange)
    value = exchange.json
    found = value.get("error_type") if isinstance(value, dict) else None
    if found != "validation":
        probe.fail("error_type validation", f"{found!r:.20}", exchange)


def _asked(probe: HttpProbe, case: Case) -> Exchange:
    route = route_in(probe, case)
    context = context_of(probe)
    prompt = "word " * (context + _BEYOND if context else _WORDS)
    stream = route.stream is not Framing.NONE and bool(case.params["stream"])
    exchange = probe.call(route, body_for(probe, route, tokens=1, stream=stream, prompt=prompt))
    if exchange.status is None:
        probe.skip("no response at all")  # a rule of its own, unless the client gave up
    return exchange


_BOTH = ({"stream": False}, {"stream": True})
_ADVICE = "Count the tokens of a prompt before the model runs."

CHECKS = (
    Check(
        "OE-HTTP-OLLAMA-017",
        refused_or_cut,
        each_route("ollama-native", *_BOTH),
        None,
        _ADVICE,
        "http.oversize.refused_or_cut",
    ),
    Check(
        "OE-HTTP-TGI-012",
        refused_as_invalid,
        each_route("tgi-native", {"stream": True}),
        None,
        _ADVICE,
        "http.oversize.refused_as_invalid",
    ),
    Check(
        "OE-HTTP-LMS-011",
        refused_or_cut,
        each_route("lmstudio-native", *_BOTH),
        None,
        _ADVICE,
        "http.oversize.refused_or_cut",
    ),
)
