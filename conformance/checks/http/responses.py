"""Checks of Responses: what its laws find, and what two calls show together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.check import HttpTable, http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import refused
from conformance.checks.http.text_api import (
    GREEDY,
    OPEN_PROMPT,
    OPEN_TOKENS,
    same,
    scripted_or_open,
    shown,
)
from conformance.http.exchange import Exchange, describe
from conformance.laws.http import http_laws
from conformance.laws.http.responses_view import (
    CONTRACT,
    ENDS,
    response_of,
    response_stream,
    text_of,
)
from conformance.model.case import Case
from conformance.runtimes.script import EMO, LOOP, RUN

_REPLACEMENT = "\ufffd"
_SCRIPTS = {"run": RUN, "emo": EMO, "loop": LOOP}
_BOTH = params({"stream": False}, {"stream": True})
_STREAM = params({"stream": True}, {"stream": True, "script": "emo"})
_ENDS = params({"stream": True}, {"stream": True, "script": "loop"})
_ALL = params({"stream": False}, {"stream": True}, {"stream": True, "script": "loop"})
_UNARY = params({"stream": False}, {"stream": False, "script": "loop"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request got, in either form. value: the response as it is at the end. end: the name
    of the last event of a stream, empty in one piece.
    """

    exchange: Exchange
    value: dict[str, Any]
    text: str
    end: str = ""

    @property
    def status(self) -> str:
        """The status; of a stream whose end carries none, what the end's name says."""
        found = self.value.get("status")
        return found if isinstance(found, str) else ENDS.get(self.end, "")

    @property
    def usage(self) -> dict[str, Any]:
        """Counts, empty when there are none."""
        usage = self.value.get("usage")
        return usage if isinstance(usage, dict) else {}


def send(probe: HttpProbe, prompt: str, *, stream: bool = False, **fields: Any) -> Exchange:
    """Ask, whatever comes of it. The form is always said: there are servers that stream unless
    they are told not to, and rules about one piece would be about two streams.
    """
    body = probe.fields(input=prompt, stream=stream, **fields)
    return probe.call(probe.route(CONTRACT), body)


def ask(probe: HttpProbe, prompt: str, *, stream: bool = False, **fields: Any) -> Reply:
    """Ask and take the answer; none says nothing here: another row is about that."""
    reply = reply_from(send(probe, prompt, stream=stream, **fields))
    if reply is None:
        probe.skip(f"an ordinary request got {describe(probe.log.transcripts[-1])}")
    return reply


def reply_from(exchange: Exchange) -> Reply | None:
    """The answer in a response; None when there is none."""
    stream = response_stream(exchange)
    if stream is not None:
        if stream.last is None or stream.failed:
            return None
        return Reply(exchange, stream.last.response, stream.text, stream.last.kind)
    value = response_of(exchange)
    if value is None or not isinstance(value.get("output"), list):
        return None
    return Reply(exchange, value, text_of(value))


def _seen_law(requirement: str, advice: str, table: HttpTable) -> Check:
    """A check whose rule is a law: it makes calls that the law judges."""

    def run(probe: HttpProbe, case: Case) -> None:
        script = _SCRIPTS[str(case.params.get("script", "run"))]
        prompt, stream = scripted_or_open(probe, script), bool(case.params["stream"])
        send(probe, prompt, stream=stream, max_output_tokens=16, **GREEDY)
        probe.settle()

    name = f"http.responses.{http_laws()[requirement].judge.__name__}"
    return Check(requirement, run, table, None, advice, name)


LAW_CHECKS = tuple(
    _seen_law(requirement, advice, table)
    for requirement, advice, table in (
        ("OE-HTTP-RESP-001", "Send object, id, created_at, model, status and output.", _UNARY),
        ("OE-HTTP-RESP-002", "Use the statuses that the API defines.", _ALL),
        ("OE-HTTP-RESP-003", "Report counts whose total is their sum.", _ALL),
        ("OE-HTTP-RESP-005", "Send the type as the name of each event.", _STREAM),
        ("OE-HTTP-RESP-006", "Number the events of a stream.", _STREAM),
        ("OE-HTTP-RESP-007", "Open items and parts before filling them.", _STREAM),
        ("OE-HTTP-RESP-008", "End a stream with the event of its status.", _ENDS),
        ("OE-HTTP-RESP-009", "Choose the last event by the status.", _ENDS),
        ("OE-HTTP-RESP-010", "Make the text of the deltas.", _STREAM),
        ("OE-HTTP-RESP-011", "Send indices and ids with each event.", _STREAM),
        ("OE-HTTP-RESP-012", "Send the response with response.created.", _STREAM),
    )
)


@http_check("OE-HTTP-RESP-004", advice="Report a cut answer as incomplete.")
def cut(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """The limit ends: `incomplete`, and why."""
    reply = _cut(probe, stream=False)
    if reply.status != "incomplete":
        probe.fail("the status incomplete", f"the status {reply.status[:20]}", reply.exchange)
    details = reply.value.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if reason != "max_output_tokens":
        probe.fail("the reason max_output_tokens", f"the reason {reason!r:.30}", reply.exchange)


@http_check("OE-HTTP-RESP-016", advice="End the stream of a cut answer as incomplete.")
def cut_stream(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """The limit ends a stream."""
    reply = _cut(probe, stream=True)
    if reply.end != "response.incomplete":
        probe.fail("the event response.incomplete", f"the event {reply.end}", reply.exchange)


def _cut(probe: HttpProbe, *, stream: bool) -> Reply:
    """An answer that its limit has cut; 16 is the least that the API allows."""
    most = 16
    prompt = scripted_or_open(probe, LOOP)
    reply = ask(probe, prompt, stream=stream, max_output_tokens=most, **GREEDY)
    if not probe.declared.scripted:
        # Its end token may be the one that the limit allows last: only a longer answer shows that
        # this one was cut.
        longer = ask(probe, prompt, max_output_tokens=most + 8, **GREEDY)
        if len(longer.text) <= len(reply.text):
            probe.skip("the model ended before the limit")
    return reply


@http_check(
    "OE-HTTP-RESP-013",
    advice="Make both forms of one generation.",
    table=params({"script": "run"}, {"script": "emo"}, {"script": "loop"}),
)
def same_text(probe: HttpProbe, case: Case) -> None:
    """Two ways, one answer."""
    whole, parts = _both_ways(probe, case)
    if whole.text == parts.text and whole.status == parts.status:
        return
    if not probe.declared.scripted:
        again, _ = _both_ways(probe, case)
        if again.text != whole.text:
            probe.skip("greedy answers of this target do not repeat")
    if whole.text != parts.text:
        actual = f"{shown(parts.text)} as a stream, {shown(whole.text)} in one piece"
        probe.fail("the same text", actual, parts.exchange)
    actual = f"{parts.status[:20]} as a stream, {whole.status[:20]} in one piece"
    probe.fail("the same status", actual, parts.exchange)


@http_check(
    "OE-HTTP-RESP-014",
    advice="Count once for both forms.",
    table=params({"script": "run"}, {"script": "loop"}),
)
def same_usage(probe: HttpProbe, case: Case) -> None:
    """Two ways, one price."""
    whole, parts = _both_ways(probe, case)
    if not whole.usage or not parts.usage:
        probe.skip("one of the two answers has no usage")
    if not probe.declared.scripted and whole.text != parts.text:
        probe.skip("the two answers differ")
    for name in ("input_tokens", "output_tokens"):
        if whole.usage.get(name) != parts.usage.get(name):
            actual = f"{parts.usage.get(name)} as a stream, {whole.usage.get(name)} in one piece"
            probe.fail(f"the same {name}", actual, parts.exchange)


def _both_ways(probe: HttpProbe, case: Case) -> tuple[Reply, Reply]:
    script = _SCRIPTS[str(case.params["script"])]
    prompt = scripted_or_open(probe, script)
    return (
        ask(probe, prompt, max_output_tokens=20, **GREEDY),
        ask(probe, prompt, stream=True, max_output_tokens=20, **GREEDY),
    )


@http_check("OE-HTTP-RESP-015", advice="Report the end token as completed.", table=_BOTH)
def own_end(probe: HttpProbe, case: Case) -> None:
    """The model ends: `completed`."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known when it ends")
    reply = ask(probe, RUN.prompt, stream=bool(case.params["stream"]), **GREEDY)
    if reply.status != "completed":
        probe.fail("the status completed", f"the status {reply.status[:20]}", reply.exchange)


@http_check("OE-HTTP-RESP-017", advice="Look the previous response up, and refuse a missing one.")
def no_previous(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """A response that never was."""
    exchange = send(
        probe,
        OPEN_PROMPT,
        previous_response_id="resp_oe_conform_no_such_response",
        max_output_tokens=16,
    )
    refused(probe, exchange, "a response that does not exist")


@http_check("OE-HTTP-RESP-018", advice="Hold back incomplete UTF-8.")
def whole_characters(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """No delta has half a character."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known that it uses such characters")
    reply = ask(probe, EMO.prompt, stream=True, **GREEDY)
    if not same(reply.text, EMO.text):
        broken = reply.text.count(_REPLACEMENT)
        actual = f"{shown(reply.text)}, {broken} of them U+FFFD"
        probe.fail(f"the {len(EMO.text)} characters of the script", actual, reply.exchange)


@http_check("OE-HTTP-RESP-019", advice="Serve plain requests.", table=_BOTH)
def ordinary(probe: HttpProbe, case: Case) -> None:
    """A plain request gets a plain answer."""
    prompt, stream = scripted_or_open(probe, RUN), bool(case.params["stream"])
    exchange = send(probe, prompt, stream=stream, max_output_tokens=OPEN_TOKENS, **GREEDY)
    reply = reply_from(exchange)
    if reply is None:
        probe.fail("status 200 and an answer", describe(exchange), exchange)
    if not reply.text:
        probe.fail("a text", "none", exchange)
    if probe.declared.scripted and not same(reply.text, RUN.text):
        probe.fail("the text of the script", shown(reply.text), exchange)
