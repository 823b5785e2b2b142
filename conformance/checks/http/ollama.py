"""Checks of Ollama's native chat and generate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.check import HttpTable, http_check
from conformance.checks.http.native import each_route, route_in
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import STOPS, refused
from conformance.checks.http.text_api import OPEN_TOKENS, same, scripted_or_open, shown
from conformance.http.exchange import Exchange, describe
from conformance.laws.http.ollama import CONTRACT, lines_of, text_in, whole_of
from conformance.model.case import Case
from conformance.runtimes.profile import Route
from conformance.runtimes.script import EMO, LOOP, RUN

BOTH = each_route(CONTRACT, {"stream": True}, {"stream": False})
STREAMS = each_route(CONTRACT, {"stream": True}, {"stream": "absent"})
EACH = each_route(CONTRACT)


@dataclass(frozen=True, slots=True)
class NativeAnswer:
    """text of all parts; end: the line or the object that says done."""

    exchange: Exchange
    text: str
    end: dict[str, Any]

    @property
    def reason(self) -> Any:
        """Why it is over."""
        return self.end.get("done_reason")


def body_of(probe: HttpProbe, route: Route, prompt: str, **options: Any) -> dict[str, Any]:
    """A greedy request of either route. options: of the sampler, stream apart."""
    chat = route.path.endswith("/chat")
    asked = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    stream = options.pop("stream", "absent")
    chosen = {} if stream == "absent" else {"stream": stream}
    return probe.fields(**asked, **chosen, options={"temperature": 0, **options})


def ask(probe: HttpProbe, route: Route, prompt: str, **options: Any) -> NativeAnswer:
    """Ask and take the answer; skips the case when there is none."""
    exchange = probe.call(route, body_of(probe, route, prompt, **options))
    stream, value = lines_of(exchange), whole_of(exchange)
    parts = [line.value for line in stream.lines] if stream is not None else [value or {}]
    ends = [part for part in parts if part.get("done") is True]
    if not ends:
        probe.skip(f"an ordinary request got {describe(exchange)}")
    text = "".join(found for part in parts if isinstance(found := text_in(part), str))
    return NativeAnswer(exchange, text, ends[-1])


def _seen(requirement: str, advice: str, table: HttpTable) -> Check:
    """A check whose rule is a law."""

    def seen_law(probe: HttpProbe, case: Case) -> None:
        route = route_in(probe, case)
        body = body_of(
            probe, route, scripted_or_open(probe, RUN), stream=case.params["stream"], num_predict=16
        )
        probe.call(route, body)
        probe.settle()

    return Check(requirement, seen_law, table, None, advice, "http.ollama.seen_law")


WHOLE = each_route(CONTRACT, {"stream": False})
LAW_CHECKS = tuple(
    _seen(requirement, advice, table)
    for requirement, advice, table in (
        ("OE-HTTP-OLLAMA-001", "Stream newline-delimited JSON unless told not to.", STREAMS),
        ("OE-HTTP-OLLAMA-002", "Write one JSON object in each line.", STREAMS),
        ("OE-HTTP-OLLAMA-003", "End a stream with one line that says done.", STREAMS),
        ("OE-HTTP-OLLAMA-004", "Send model, created_at and text in each line.", STREAMS),
        ("OE-HTTP-OLLAMA-005", "Say stop or length.", BOTH),
        ("OE-HTTP-OLLAMA-006", "Send counters as whole numbers.", BOTH),
        ("OE-HTTP-OLLAMA-014", "End the response after the last line.", STREAMS),
        ("OE-HTTP-OLLAMA-007", "Answer with one object when stream is false.", WHOLE),
    )
)


@http_check("OE-HTTP-OLLAMA-008", advice="Make both of one generation.", table=EACH)
def stream_equals_unary(probe: HttpProbe, case: Case) -> None:
    """Two ways, one answer."""
    route, prompt = route_in(probe, case), scripted_or_open(probe, RUN)
    parts, whole, again = (
        ask(probe, route, prompt, stream=stream, num_predict=OPEN_TOKENS)
        for stream in (True, False, False)
    )
    if whole.text != again.text:
        probe.skip("greedy answers of this target do not repeat")
    if parts.text != whole.text:
        actual = f"{shown(parts.text)} as a stream, {shown(whole.text)} in one piece"
        probe.fail("the same text", actual, parts.exchange)
    if parts.reason != whole.reason:
        actual = f"{parts.reason!r:.20} as a stream, {whole.reason!r:.20} in one piece"
        probe.fail("the same done_reason", actual, parts.exchange)


@http_check(
    "OE-HTTP-OLLAMA-009",
    advice="Count tokens against num_predict.",
    table=each_route(CONTRACT, {"num_predict": 5, "stream": True}, {"num_predict": 1}),
)
def cut(probe: HttpProbe, case: Case) -> None:
    """The limit ends it."""
    route, most = route_in(probe, case), int(case.params["num_predict"])
    prompt, stream = scripted_or_open(probe, LOOP), bool(case.params.get("stream", False))
    answer = ask(probe, route, prompt, stream=stream, num_predict=most)
    count = answer.end.get("eval_count")
    if isinstance(count, int) and count > most:
        probe.fail(f"an eval_count of at most {most}", f"{count}", answer.exchange)
    if answer.reason != "length":
        probe.fail("done_reason length", f"{answer.reason!r:.20}", answer.exchange)


@http_check("OE-HTTP-OLLAMA-010", advice="Report the end token as stop.", table=BOTH)
def own_end(probe: HttpProbe, case: Case) -> None:
    """The model ends it."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known when it ends")
    answer = ask(probe, route_in(probe, case), RUN.prompt, stream=bool(case.params["stream"]))
    if answer.reason != "stop":
        probe.fail("done_reason stop", f"{answer.reason!r:.20}", answer.exchange)


@http_check(
    "OE-HTTP-OLLAMA-011",
    advice="Match stop strings in the text and hold back what may be one.",
    table=each_route(CONTRACT, *({"stop": stop} for stop in STOPS)),
)
def stopped(probe: HttpProbe, case: Case) -> None:
    """Nothing of the string, everything before it."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known what it says")
    stop = str(case.params["stop"])
    answer = ask(probe, route_in(probe, case), RUN.prompt, stream=True, stop=[stop])
    if not same(answer.text, RUN.text.partition(stop)[0]):
        probe.fail("the text before the stop string", shown(answer.text), answer.exchange)


@http_check("OE-HTTP-OLLAMA-012", advice="Hold back incomplete UTF-8.", table=EACH)
def whole_characters(probe: HttpProbe, case: Case) -> None:
    """No half of a character."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known what it says")
    answer = ask(probe, route_in(probe, case), EMO.prompt, stream=True)
    if not same(answer.text, EMO.text):
        broken = answer.text.count("\ufffd")
        actual = f"{shown(answer.text)}, {broken} of them U+FFFD"
        probe.fail(f"the {len(EMO.text)} characters of the script", actual, answer.exchange)


@http_check(
    "OE-HTTP-OLLAMA-013",
    advice='Answer a bad request with 4xx and {"error": "text"}.',
    table=each_route(CONTRACT, {"bad": "model"}, {"bad": "prompt"}),
)
def refusals(probe: HttpProbe, case: Case) -> None:
    """A fault of the client."""
    route = route_in(probe, case)
    body = body_of(probe, route, RUN.prompt, stream=False)
    if case.params["bad"] == "model":
        body["model"] = "oe-conform-no-such-model"
    else:
        body["messages" if "messages" in body else "prompt"] = 5
    exchange = probe.call(route, body)
    refused(probe, exchange, f"a bad {case.params['bad']}")
    said = exchange.json.get("error") if isinstance(exchange.json, dict) else None
    if not isinstance(said, str) or not said:
        probe.fail("a text error", "none", exchange)
