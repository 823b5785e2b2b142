"""Bodies of checks that Chat Completions and Completions share; each API gives them its ids."""

from __future__ import annotations

from typing import Any, NoReturn

import jsonschema

from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import (
    GREEDY,
    OPEN_PROMPT,
    OPEN_TOKENS,
    Answer,
    TextApi,
    answer_from,
    ask,
    repeatable,
    same,
    same_again,
    scripted_or_open,
    send,
    shown,
)
from conformance.http.exchange import Exchange, describe
from conformance.http.json_text import JsonFault, parse_json
from conformance.laws.http.view import choices_of, is_count
from conformance.model.case import Case
from conformance.runtimes.script import COIN_PROMPT, EMO, HEADS, LOOP, RUN, TAILS

_REPLACEMENT = "\ufffd"
_UNICODE_PROMPT = (
    "Repeat exactly, with nothing else: \U0001f600 \u65e5\u672c\u8a9e caf\u00e9 \U0001f680"
)
# Stop strings of the scripted run: inside a token, over two tokens, a whole token, in the first.
STOPS = ("gamma", "ta gam", " delta", "pha")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def ordinary(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """A plain request gets a plain answer."""
    stream = bool(case.params["stream"])
    prompt = scripted_or_open(probe, RUN)
    exchange = send(probe, api, prompt, stream=stream, max_tokens=OPEN_TOKENS, **GREEDY)
    answer = answer_from(exchange, api)
    if answer is None:
        probe.fail("status 200 and an answer", describe(exchange), exchange)
    if not answer.text:
        probe.fail("a text", "none", exchange)
    if probe.declared.scripted and not same(answer.text, RUN.text):
        probe.fail("the text of the script", shown(answer.text), exchange)


def own_end(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """The model ends: `stop`."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known when it ends")
    answer = ask(probe, api, RUN.prompt, stream=bool(case.params["stream"]), **GREEDY)
    if answer.finish != "stop":
        probe.fail("finish_reason stop", f"finish_reason {answer.finish!r:.20}", answer.exchange)


def cut(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """The limit ends: `length`, and no more tokens than that."""
    most, stream = int(case.params["max_tokens"]), bool(case.params["stream"])
    prompt = scripted_or_open(probe, LOOP)
    options = {"stream_options": {"include_usage": True}} if _counts(probe, api, stream) else {}
    answer = ask(probe, api, prompt, stream=stream, max_tokens=most, **GREEDY, **options)
    count = answer.completion_tokens
    if count is not None and count > most:
        probe.fail(f"at most {most} completion tokens", f"{count}", answer.exchange)
    if probe.declared.scripted and not same(answer.text, LOOP.upto(most)):
        probe.fail(f"the first {most} tokens", shown(answer.text), answer.exchange)
    if not probe.declared.scripted:
        # Its end token may be the one that the limit allows last: only a longer answer shows that
        # this one was cut.
        longer = ask(probe, api, prompt, max_tokens=most + 8, **GREEDY)
        if len(longer.text) <= len(answer.text):
            probe.skip("the model ended before the limit")
    if answer.finish != "length":
        probe.fail("finish_reason length", f"finish_reason {answer.finish!r:.20}", answer.exchange)


def _counts(probe: HttpProbe, api: TextApi, stream: bool) -> bool:
    kind = api.contract.partition("-")[2]
    return stream and probe.declared.has(f"{kind}.stream_usage")


def stopped(probe: HttpProbe, api: TextApi, case: Case, *, stream: bool) -> None:
    """A stop string ends the text before it."""
    stop, before, prompt = _stop_case(probe, api, case)
    fields = {"max_tokens": OPEN_TOKENS, "stop": [stop] if case.params.get("list") else stop}
    answer = ask(probe, api, prompt, stream=stream, **GREEDY, **fields)
    if not same(answer.text, before):
        kept = len(answer.text.lstrip(" "))
        wanted = len(before.lstrip(" "))
        if kept > wanted:
            actual = f"{kept - wanted} characters of it or after it"
            probe.fail("nothing of the stop string or after it", actual, answer.exchange)
        probe.fail("all text before the stop string", f"{kept} of {wanted}", answer.exchange)
    if answer.finish != "stop":
        probe.fail("finish_reason stop", f"finish_reason {answer.finish!r:.20}", answer.exchange)


def _stop_case(probe: HttpProbe, api: TextApi, case: Case) -> tuple[str, str, str]:
    """Stop string, what comes before it, and the prompt."""
    if probe.declared.scripted:
        stop = str(case.params["stop"])
        return stop, RUN.text.partition(stop)[0], RUN.prompt
    text = repeatable(probe, api, OPEN_PROMPT, max_tokens=OPEN_TOKENS)
    middle = len(text) // 2
    stop = text[middle : middle + 5]
    if len(stop) < 5 or not stop.isascii():
        probe.skip("the model's answer is too short to stop it")
    return stop, text[: text.find(stop)], OPEN_PROMPT


def released(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """What only began like a stop string is sent, whatever ends the answer: compared with the same
    answer without a stop string.
    """
    prompt, stream = scripted_or_open(probe, RUN), bool(case.params["stream"])
    most = int(case.params.get("max_tokens", OPEN_TOKENS))
    text = repeatable(probe, api, prompt, stream=stream, max_tokens=most)
    if not text:
        probe.skip("an answer without text")
    stop = text[-4:] + "\u241e"
    answer = ask(probe, api, prompt, stream=stream, stop=stop, max_tokens=most, **GREEDY)
    if answer.text != text:
        missing = len(text) - len(answer.text)
        probe.fail("the whole text", f"{missing} characters are missing", answer.exchange)


def whole_characters(probe: HttpProbe, api: TextApi, case: Case) -> None:  # noqa: ARG001
    """No delta has half a character."""
    if probe.declared.scripted:
        answer = ask(probe, api, EMO.prompt, stream=True, **GREEDY)
        if not same(answer.text, EMO.text):
            broken = answer.text.count(_REPLACEMENT)
            actual = f"{shown(answer.text)}, {broken} of them U+FFFD"
            probe.fail(f"the {len(EMO.text)} characters of the script", actual, answer.exchange)
        return
    whole = ask(probe, api, _UNICODE_PROMPT, max_tokens=48, **GREEDY).text
    if whole.isascii() or _REPLACEMENT in whole:
        probe.skip("the model's answer has no character of several bytes")
    answer = ask(probe, api, _UNICODE_PROMPT, stream=True, max_tokens=48, **GREEDY)
    if _REPLACEMENT in answer.text:
        probe.fail("whole characters", "U+FFFD in a delta", answer.exchange)


def cut_character(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Half a character at the end: the same both ways."""
    if not probe.declared.scripted:
        probe.skip("only of the scripted model it is known where its characters are cut")
    most = int(case.params["max_tokens"])
    whole = ask(probe, api, EMO.prompt, max_tokens=most, **GREEDY)
    parts = ask(probe, api, EMO.prompt, stream=True, max_tokens=most, **GREEDY)
    if whole.text != parts.text:
        actual = f"{shown(parts.text)} as a stream, {shown(whole.text)} in one piece"
        probe.fail("the same text", actual, parts.exchange)


def stream_equals_unary(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Two ways, one answer."""
    prompt, most = _compared(probe, case)
    whole, parts = _both_ways(probe, api, prompt, max_tokens=most)
    if whole.text == parts.text and whole.finish == parts.finish:
        return
    if not probe.declared.scripted:
        same_again(probe, api, prompt, whole.text, max_tokens=most)
    if whole.text != parts.text:
        actual = f"{shown(parts.text)} as a stream, {shown(whole.text)} in one piece"
        probe.fail("the same text", actual, parts.exchange)
    actual = f"{parts.finish!r:.20} as a stream, {whole.finish!r:.20} in one piece"
    probe.fail("the same finish_reason", actual, parts.exchange)


def same_usage(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Two ways, one price."""
    prompt, most = _compared(probe, case)
    whole, parts = _both_ways(
        probe, api, prompt, max_tokens=most, stream_options={"include_usage": True}
    )
    if not whole.usage or not parts.usage:
        probe.skip("one of the two answers has no usage")
    if not probe.declared.scripted and whole.text != parts.text:
        probe.skip("the two answers differ")
    for name in ("prompt_tokens", "completion_tokens"):
        if whole.usage.get(name) != parts.usage.get(name):
            actual = f"{parts.usage.get(name)} as a stream, {whole.usage.get(name)} in one piece"
            probe.fail(f"the same {name}", actual, parts.exchange)


def _compared(probe: HttpProbe, case: Case) -> tuple[str, int]:
    if not probe.declared.scripted:
        return OPEN_PROMPT, OPEN_TOKENS
    script = {"run": RUN, "emo": EMO, "loop": LOOP}[str(case.params["script"])]
    return script.prompt, 20


def _both_ways(probe: HttpProbe, api: TextApi, prompt: str, **fields: Any) -> tuple[Answer, Answer]:
    streamed = dict(fields)
    fields.pop("stream_options", None)
    return (
        ask(probe, api, prompt, **GREEDY, **fields),
        ask(probe, api, prompt, stream=True, **GREEDY, **streamed),
    )


def several(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """So many choices, counted from 0, each with an end."""
    stream, n = bool(case.params["stream"]), int(case.params["n"])
    prompt = scripted_or_open(probe, RUN)
    exchange = send(probe, api, prompt, stream=stream, n=n, max_tokens=16, temperature=1)
    answer = answer_from(exchange, api)
    if answer is None:
        _refused_or_skip(probe, exchange, f"{n} choices")
    if answer.stream is not None:
        found: list[Any] = list(answer.stream.indices)
        ends = [answer.stream.finish(index) for index in found]
    else:
        choices = choices_of(answer.value or {})
        found = [choice.get("index") for choice in choices]
        ends = [choice.get("finish_reason") for choice in choices]
    if not all(is_count(each) for each in found) or sorted(found) != list(range(n)):
        probe.fail(f"{n} choices, 0 to {n - 1}", f"{len(found)} choices", exchange)
    if None in ends:
        probe.fail("a finish_reason for each choice", "none for one of them", exchange)


def seeded(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """One seed, one answer."""
    seed = int(case.params["seed"])
    prompt = COIN_PROMPT if probe.declared.scripted else OPEN_PROMPT
    texts = [
        ask(probe, api, prompt, seed=seed, temperature=1, max_tokens=12).text for _ in range(4)
    ]
    if len(set(texts)) > 1:
        probe.fail("one answer for one seed", f"{len(set(texts))} in {len(texts)} calls")


def sampled(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Different seeds, or none: not always the same answer."""
    seeds: list[int | None] = [None] * 16 if case.params["seeds"] == "none" else [*range(1, 25)]
    prompt = COIN_PROMPT if probe.declared.scripted else OPEN_PROMPT
    temperature = 1 if probe.declared.scripted else 1.5
    seen: set[str] = set()
    for seed in seeds:
        named: dict[str, Any] = {} if seed is None else {"seed": seed}
        answer = ask(probe, api, prompt, temperature=temperature, max_tokens=12, **named)
        seen.add(answer.text.strip())
        if probe.declared.scripted and not seen <= {HEADS.strip(), TAILS.strip()}:
            probe.fail("one of two words", shown(answer.text), answer.exchange)
        if len(seen) > 1:
            return
    probe.fail("answers that vary", f"one and the same in {len(seeds)} calls")


def constrained(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """The schema holds."""
    stream = bool(case.params["stream"])
    prompt = "Is water wet? Answer in JSON. RUN"
    exchange = send(
        probe, api, prompt, stream=stream, max_tokens=64, response_format=_format(SCHEMA), **GREEDY
    )
    answer = answer_from(exchange, api)
    if answer is None:
        _refused_or_skip(probe, exchange, "an answer")
    if answer.finish == "length":
        probe.skip("the answer was cut")
    value = parse_json(answer.text.encode())
    if isinstance(value, JsonFault):
        probe.fail("JSON", value.problem, exchange)
    if not jsonschema.Draft202012Validator(SCHEMA).is_valid(value):
        probe.fail("JSON that the schema accepts", "JSON that it does not accept", exchange)


def bad_schema(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """What is no schema is refused."""
    schema = case.params["schema"]
    exchange = send(
        probe, api, scripted_or_open(probe, RUN), max_tokens=8, response_format=_format(schema)
    )
    refused(probe, exchange, "a schema that is none")


def _format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def prefix(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """A smaller limit gives a beginning of the same text."""
    small, large = int(case.params["small"]), int(case.params["large"])
    prompt = scripted_or_open(probe, LOOP)
    short = ask(probe, api, prompt, max_tokens=small, **GREEDY)
    long = ask(probe, api, prompt, max_tokens=large, **GREEDY)
    begin = short.text.rstrip(_REPLACEMENT)
    if long.text.startswith(begin):
        return
    if not probe.declared.scripted:
        same_again(probe, api, prompt, short.text, max_tokens=small)
        same_again(probe, api, prompt, long.text, max_tokens=large)
    probe.fail("a prefix of the longer answer", f"other {shown(short.text)}", short.exchange)


def nothing(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """max_tokens 0: refused, or nothing generated."""
    stream = bool(case.params["stream"])
    exchange = send(probe, api, scripted_or_open(probe, RUN), stream=stream, max_tokens=0)
    if exchange.status is not None and 400 <= exchange.status < 500:
        return
    answer = answer_from(exchange, api)
    if exchange.status is None:
        probe.skip("no response at all")
    if answer is None:
        probe.fail("a 4xx status or nothing generated", describe_status(exchange), exchange)
    if answer.text or (answer.completion_tokens or 0) > 0:
        probe.fail("a 4xx status or nothing generated", "a generated text", exchange)


def refused(probe: HttpProbe, exchange: Exchange, what: str) -> None:
    """A fault of the client gets a 4xx status."""
    status = exchange.status
    if status is None:
        probe.skip("no response at all")
    if not 400 <= status < 500:
        probe.fail(f"a 4xx status for {what}", describe_status(exchange), exchange)


def _refused_or_skip(probe: HttpProbe, exchange: Exchange, wanted: str) -> NoReturn:
    """A refusal of what the profile says is supported is a breach; any other failure is not."""
    if exchange.status is not None and 400 <= exchange.status < 500:
        probe.fail(wanted, describe_status(exchange), exchange)
    probe.skip(f"no answer: {describe(exchange)}")


def describe_status(exchange: Exchange) -> str:
    """The status alone, which is what a profile can say of a known deviation."""
    if exchange.status is None:
        return f"no status: {exchange.ending.kind.value}"
    return f"status {exchange.status}"
