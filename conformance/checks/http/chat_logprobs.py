"""Checks of the log probabilities that Chat Completions gives."""

from __future__ import annotations

from typing import Any

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import (
    CHAT_API,
    GREEDY,
    OPEN_PROMPT,
    OPEN_TOKENS,
    Answer,
    ask,
    shown,
)
from conformance.model.case import Case
from conformance.runtimes.script import EMO, RUN

# Two servers may round a log probability differently; none is off by more than this.
_ROUNDING = 1e-3
_SCRIPTS = {"run": RUN, "emo": EMO}


def _asked(probe: HttpProbe, case: Case, **fields: Any) -> Answer:
    script = _SCRIPTS[str(case.params["script"])]
    prompt = script.prompt if probe.declared.scripted else OPEN_PROMPT
    return ask(probe, CHAT_API, prompt, max_tokens=OPEN_TOKENS, logprobs=True, **GREEDY, **fields)


def _entries(probe: HttpProbe, answer: Answer) -> list[dict[str, Any]]:
    choice = answer.choice or {}
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        probe.fail("logprobs.content with a list of entries", "none", answer.exchange)
    return content


@http_check(
    "OE-HTTP-CHAT-022",
    advice="Give each token an entry, also where its bytes are a part of a character only.",
    table=params({"script": "run"}, {"script": "emo"}),
)
def entries(probe: HttpProbe, case: Case) -> None:
    """One entry for each token."""
    answer = _asked(probe, case)
    found = _entries(probe, answer)
    for entry in found:
        problem = _problem(entry)
        if problem is not None:
            probe.fail("token, logprob and bytes", problem, answer.exchange)
    count = answer.completion_tokens
    if count is None:
        probe.skip("no completion tokens are reported")
    # The end token may be counted and have no entry: it has no text.
    least = count if answer.finish == "length" else count - 1
    if not least <= len(found) <= count:
        actual = f"{len(found)} entries for {count} completion tokens"
        probe.fail("one entry for each completion token", actual, answer.exchange)


@http_check(
    "OE-HTTP-CHAT-023",
    advice="Give each entry the bytes of its own token only.",
    table=params({"script": "run"}),
)
def joined(probe: HttpProbe, case: Case) -> None:
    """The entries make up the text."""
    answer = _asked(probe, case)
    pieces = [_bytes(entry) for entry in _entries(probe, answer)]
    text = answer.text.encode()
    # The last entry may be the end token, whose name is no part of the text.
    for made in (b"".join(pieces), b"".join(pieces[:-1])):
        if made.lstrip(b" ") == text.lstrip(b" "):
            return
    actual = f"{len(b''.join(pieces))} bytes for {shown(answer.text)}"
    probe.fail("entries that make up the text", actual, answer.exchange)


@http_check(
    "OE-HTTP-CHAT-024",
    advice="Sort the alternatives, cut them to top_logprobs, and count the chosen token in.",
    table=params({"script": "run", "top": 1}, {"script": "run", "top": 3}),
)
def alternatives(probe: HttpProbe, case: Case) -> None:
    """At most k, sorted, the greedy token first."""
    most = int(case.params["top"])
    answer = _asked(probe, case, top_logprobs=most)
    for entry in _entries(probe, answer):
        tops = entry.get("top_logprobs")
        if not isinstance(tops, list) or not all(isinstance(each, dict) for each in tops):
            probe.fail("a list top_logprobs in each entry", "none", answer.exchange)
        if not tops or len(tops) > most:
            probe.fail(f"1 to {most} alternatives", f"{len(tops)}", answer.exchange)
        values: list[Any] = [each.get("logprob") for each in tops]
        if not all(_number(value) for value in values):
            probe.fail("a number as logprob", "none", answer.exchange)
        if values != sorted(values, reverse=True):
            probe.fail("alternatives from likely to unlikely", "another order", answer.exchange)
        own = entry.get("logprob")
        if _number(own) and own < values[0] - _ROUNDING:
            probe.fail("the greedy token as the first", "a likelier one", answer.exchange)


def _problem(entry: dict[str, Any]) -> str | None:
    if not isinstance(entry.get("token"), str):
        return "no text `token`"
    value: Any = entry.get("logprob")
    if not _number(value) or value > _ROUNDING:
        return "no `logprob` of at most 0"
    parts = entry.get("bytes")
    if parts is None:
        return None
    whole = isinstance(parts, list) and all(
        isinstance(each, int) and 0 <= each <= 255 for each in parts
    )
    return None if whole else "`bytes` that are neither bytes nor null"


def _bytes(entry: dict[str, Any]) -> bytes:
    parts = entry.get("bytes")
    if isinstance(parts, list):
        return bytes(each for each in parts if isinstance(each, int) and 0 <= each <= 255)
    token = entry.get("token")
    return token.encode(errors="replace") if isinstance(token, str) else b""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
