"""Checks of LM Studio's native chat. Every request asks that the chat is not kept."""

from __future__ import annotations

from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.check import HttpTable, http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import OPEN_TOKENS, scripted_or_open, shown
from conformance.http.exchange import Exchange, describe
from conformance.laws.http.lmstudio import CONTRACT, message_of, output_tokens, result_of
from conformance.model.case import Case
from conformance.runtimes.script import LOOP, RUN

STREAM, WHOLE = params({"stream": True}), params({"stream": False})
BOTH = params({"stream": True}, {"stream": False})


def ask(probe: HttpProbe, prompt: str, *, stream: bool, tokens: int = OPEN_TOKENS) -> Exchange:
    """A greedy request that leaves nothing behind."""
    body = probe.fields(
        input=prompt, stream=stream, max_output_tokens=tokens, temperature=0, store=False
    )
    return probe.call(probe.route(CONTRACT), body)


def answered(
    probe: HttpProbe, prompt: str, *, stream: bool, tokens: int = OPEN_TOKENS
) -> tuple[Exchange, dict[str, Any]]:
    """The same with its result; skips the case when there is none."""
    exchange = ask(probe, prompt, stream=stream, tokens=tokens)
    result = result_of(exchange)
    if result is None:
        probe.skip(f"an ordinary request got {describe(exchange)}")
    return exchange, result


def _seen(requirement: str, advice: str, table: HttpTable) -> Check:
    """A check whose rule is a law."""

    def seen_law(probe: HttpProbe, case: Case) -> None:
        ask(probe, scripted_or_open(probe, RUN), stream=bool(case.params["stream"]))
        probe.settle()

    return Check(requirement, seen_law, table, None, advice, "http.lmstudio.seen_law")


LAW_CHECKS = (
    _seen("OE-HTTP-LMS-001", "Name the instance, and give each output item its type.", WHOLE),
    _seen("OE-HTTP-LMS-002", "Report counts and times of at least 0.", BOTH),
    _seen("OE-HTTP-LMS-003", "Name each event as its type.", STREAM),
    _seen("OE-HTTP-LMS-004", "Begin with chat.start and end with chat.end.", STREAM),
    _seen("OE-HTTP-LMS-005", "End each phase before the next begins.", STREAM),
    _seen("OE-HTTP-LMS-006", "Put into chat.end what the deltas said.", STREAM),
)


@http_check("OE-HTTP-LMS-007", advice="Count tokens against max_output_tokens.", table=BOTH)
def cut(probe: HttpProbe, case: Case) -> None:
    """The limit holds."""
    stream, most = bool(case.params["stream"]), 5
    exchange, result = answered(probe, scripted_or_open(probe, LOOP), stream=stream, tokens=most)
    count = output_tokens(result)
    if count is None:
        probe.skip("the answer has no count of output tokens")
    if count > most:
        probe.fail(f"at most {most} output tokens", f"{count}", exchange)


@http_check("OE-HTTP-LMS-008", advice="Make both of one generation.")
def stream_equals_unary(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Two ways, one text."""
    prompt = scripted_or_open(probe, RUN)
    exchange, streamed = answered(probe, prompt, stream=True)
    wholes = [message_of(answered(probe, prompt, stream=False)[1]) for _ in range(2)]
    if wholes[0] != wholes[1]:
        probe.skip("greedy answers of this target do not repeat")
    text = message_of(streamed)
    if text != wholes[0]:
        actual = f"{shown(text)} as a stream, {shown(wholes[0])} in one piece"
        probe.fail("the same messages", actual, exchange)
