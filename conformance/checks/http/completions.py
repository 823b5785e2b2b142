"""Checks of Completions: what it shares with Chat Completions, and what only it has."""

from __future__ import annotations

from typing import Any

from conformance.checks.http import shared
from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import describe_status
from conformance.checks.http.text_api import (
    COMPLETIONS_API,
    GREEDY,
    OPEN_PROMPT,
    OPEN_TOKENS,
    answer_from,
    ask,
    same,
    scripted_or_open,
    send,
    shown,
)
from conformance.checks.http.text_checks import (
    BOTH,
    CUT_CASES,
    CUT_CHARACTERS,
    PREFIXES,
    RELEASED,
    SAMPLED,
    SCRIPTS,
    SEEDS,
    STOP_CASES,
    STREAM,
    STREAM_AND_UNARY,
    TWO,
    TWO_STREAMED,
    UNARY,
    WITH_USAGE,
    for_api,
    seen_law,
    stopped_stream,
    stopped_whole,
    without_usage,
)
from conformance.http.exchange import describe
from conformance.laws.http.view import choices_of
from conformance.model.case import Case
from conformance.runtimes.script import LOOP, RUN

_LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")

LAW_CHECKS = tuple(
    seen_law(requirement, COMPLETIONS_API, advice, table)
    for requirement, advice, table in (
        ("OE-HTTP-COMP-001", "Send object, id, created, model and numbered choices.", UNARY),
        ("OE-HTTP-COMP-002", "Give all messages of a stream one id and one model.", STREAM),
        ("OE-HTTP-COMP-003", "Send finish_reason null until the last message.", STREAM),
        ("OE-HTTP-COMP-004", "Use the reasons that the API defines.", STREAM_AND_UNARY),
        ("OE-HTTP-COMP-005", "Send finish_reason after all text.", STREAM),
        ("OE-HTTP-COMP-006", "End each stream with the event [DONE].", STREAM),
        ("OE-HTTP-COMP-007", "Send usage in a last message with choices [].", WITH_USAGE),
        ("OE-HTTP-COMP-008", "Send usage only where include_usage is true.", without_usage),
        ("OE-HTTP-COMP-009", "Report counts whose total is their sum.", UNARY),
        ("OE-HTTP-COMP-023", "Send logprobs only where they are asked for.", STREAM_AND_UNARY),
        ("OE-HTTP-COMP-030", "Number choices below n; end a stream after an error.", STREAM),
    )
)

BODY_CHECKS = tuple(
    for_api(requirement, COMPLETIONS_API, body, advice, table)
    for requirement, body, advice, table in (
        ("OE-HTTP-COMP-010", shared.own_end, "Report the end token as stop.", BOTH),
        ("OE-HTTP-COMP-011", shared.cut, "Count tokens, and report length.", CUT_CASES),
        ("OE-HTTP-COMP-012", stopped_whole, "Match stop strings in the text.", STOP_CASES),
        ("OE-HTTP-COMP-013", stopped_stream, "Hold back what may be a stop string.", STOP_CASES),
        ("OE-HTTP-COMP-014", shared.released, "Send what is held back at the end.", RELEASED),
        ("OE-HTTP-COMP-015", shared.whole_characters, "Hold back incomplete UTF-8.", UNARY),
        ("OE-HTTP-COMP-016", shared.cut_character, "Treat half a character alike.", CUT_CHARACTERS),
        ("OE-HTTP-COMP-017", shared.stream_equals_unary, "Make both of one generation.", SCRIPTS),
        ("OE-HTTP-COMP-018", shared.same_usage, "Count once for both forms.", SCRIPTS),
        ("OE-HTTP-COMP-019", shared.several, "Generate n choices.", TWO),
        ("OE-HTTP-COMP-020", shared.several, "Generate n choices.", TWO_STREAMED),
        ("OE-HTTP-COMP-024", shared.seeded, "Seed the sampler of each request.", SEEDS),
        ("OE-HTTP-COMP-025", shared.sampled, "Sample at a temperature above 0.", SAMPLED),
        ("OE-HTTP-COMP-026", shared.prefix, "Let max_tokens only end the answer.", PREFIXES),
        ("OE-HTTP-COMP-027", shared.nothing, "Refuse max_tokens 0.", BOTH),
        ("OE-HTTP-COMP-031", shared.ordinary, "Serve plain requests.", BOTH),
    )
)


def _logprobs(probe: HttpProbe) -> tuple[dict[str, list[Any]], str, int | None, str]:
    """The lists of an answer's logprobs, its text, its count of tokens and how it ended."""
    prompt = scripted_or_open(probe, RUN)
    answer = ask(probe, COMPLETIONS_API, prompt, max_tokens=OPEN_TOKENS, logprobs=1, **GREEDY)
    found = (answer.choice or {}).get("logprobs")
    if not isinstance(found, dict):
        probe.fail("logprobs of the choice", "none", answer.exchange)
    for name in _LISTS:
        if not isinstance(found.get(name), list):
            probe.fail(f"the lists {', '.join(_LISTS)}", f"no list {name}", answer.exchange)
    return found, answer.text, answer.completion_tokens, str(answer.finish)


@http_check("OE-HTTP-COMP-021", advice="Send the four lists of this API, not those of chat.")
def entries(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Four lists of one length."""
    found, _, count, finish = _logprobs(probe)
    lengths = {name: len(found[name]) for name in _LISTS}
    if len(set(lengths.values())) > 1:
        probe.fail("lists of one length", ", ".join(f"{lengths[name]} {name}" for name in _LISTS))
    length = lengths["tokens"]
    if count is not None:
        least = count if finish == "length" else count - 1
        if not least <= length <= count:
            actual = f"{length} entries for {count} completion tokens"
            probe.fail("one entry for each completion token", actual)


@http_check("OE-HTTP-COMP-022", advice="Give each token its own text and where it begins.")
def joined(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """The tokens make up the text."""
    found, text, _, _ = _logprobs(probe)
    tokens = [token for token in found["tokens"] if isinstance(token, str)]
    # The last one may be the end token, whose name is no part of the text.
    if not any(same("".join(made), text) for made in (tokens, tokens[:-1])):
        size = len("".join(tokens))
        probe.fail("tokens that make up the text", f"{size} characters for {shown(text)}")
    offsets = found["text_offset"]
    if not all(isinstance(each, int) for each in offsets) or offsets != sorted(offsets):
        probe.fail("offsets that grow", "other offsets")


@http_check(
    "OE-HTTP-COMP-028",
    advice="Put the prompt before the text.",
    table=params({"max_tokens": 4}, {"max_tokens": 0}),
)
def echoed(probe: HttpProbe, case: Case) -> None:
    """The prompt comes back."""
    most = int(case.params["max_tokens"])
    prompt = scripted_or_open(probe, LOOP)
    exchange = send(probe, COMPLETIONS_API, prompt, echo=True, max_tokens=most, **GREEDY)
    answer = answer_from(exchange, COMPLETIONS_API)
    if answer is None:
        if exchange.status is None:
            probe.skip("no response at all")
        probe.fail("the prompt and the answer", describe_status(exchange), exchange)
    text = answer.text.lstrip(" ")
    if not text.startswith(prompt):
        probe.fail("a text that begins with the prompt", "another text", exchange)
    if most == 0 and text.strip() != prompt:
        more = len(text) - len(prompt)
        probe.fail("the prompt alone", f"{more} characters after it", exchange)


@http_check("OE-HTTP-COMP-029", advice="Answer each prompt of a list.")
def batch(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Two prompts, two choices."""
    first = scripted_or_open(probe, RUN)
    second = LOOP.prompt if probe.declared.scripted else f"Answer in French. {OPEN_PROMPT}"
    route = probe.route(COMPLETIONS_API.contract)
    fields = probe.fields(prompt=[first, second], max_tokens=8, stream=False, **GREEDY)
    exchange = probe.call(route, fields)
    answer = answer_from(exchange, COMPLETIONS_API)
    if answer is None:
        if exchange.status is not None and 400 <= exchange.status < 500:
            probe.fail("a choice for each prompt", describe_status(exchange), exchange)
        probe.skip(f"no answer: {describe(exchange)}")
    found = choices_of(answer.value or {})
    choices = {repr(choice.get("index")): choice for choice in found}
    if set(choices) != {"0", "1"}:
        probe.fail("a choice for each prompt", f"{len(choices)} choices", exchange)
    if not probe.declared.scripted:
        return
    for index, script in enumerate((RUN, LOOP)):
        text = str(choices[repr(index)].get("text")).lstrip(" ")
        if not text.startswith(script.upto(8).lstrip(" ")):
            probe.fail("choices in the order of the prompts", "another text", exchange)
