"""The two text APIs, Chat Completions and Completions, in one form for the checks of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conformance.checks.http.probe import HttpProbe
from conformance.http.exchange import Exchange, describe
from conformance.laws.http.view import (
    CHAT,
    COMPLETIONS,
    Dialect,
    Stream,
    answer_of,
    choices_of,
    stream_of,
)
from conformance.runtimes.script import Script

# Asked of a model that nobody knows. Greedy, so that two answers can be compared.
OPEN_PROMPT = "Write the numbers from one to twenty in words, separated by commas."
OPEN_TOKENS = 24
GREEDY: dict[str, Any] = {"temperature": 0}


@dataclass(frozen=True, slots=True)
class TextApi:
    """One API. asked: the fields that carry a prompt."""

    dialect: Dialect
    asked: Callable[[str], dict[str, Any]]

    @property
    def contract(self) -> str:
        """Name of its requirement set."""
        return self.dialect.contract


CHAT_API = TextApi(CHAT, lambda prompt: {"messages": [{"role": "user", "content": prompt}]})
COMPLETIONS_API = TextApi(COMPLETIONS, lambda prompt: {"prompt": prompt})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request got. text: empty where there is none. value: the object of an answer in one
    piece; stream: the stream; the other is None.
    """

    exchange: Exchange
    api: TextApi
    value: dict[str, Any] | None
    stream: Stream | None

    @property
    def text(self) -> str:
        """Text of the first choice."""
        if self.stream is not None:
            return self.stream.text(self.api.dialect)
        choice = self.choice
        found = None if choice is None else self.api.dialect.whole(choice)
        return found if isinstance(found, str) else ""

    @property
    def finish(self) -> Any:
        """finish_reason of the first choice."""
        if self.stream is not None:
            return self.stream.finish()
        return None if self.choice is None else self.choice.get("finish_reason")

    @property
    def choice(self) -> dict[str, Any] | None:
        """The first choice of an answer in one piece."""
        choices = choices_of(self.value or {})
        return choices[0] if choices else None

    @property
    def usage(self) -> dict[str, Any]:
        """Counts, empty when there are none."""
        if self.stream is not None:
            return self.stream.usages[-1][1] if self.stream.usages else {}
        usage = (self.value or {}).get("usage")
        return usage if isinstance(usage, dict) else {}

    @property
    def completion_tokens(self) -> int | None:
        """The count of completion tokens, when it is reported."""
        count = self.usage.get("completion_tokens")
        return count if isinstance(count, int) else None


def send(
    probe: HttpProbe, api: TextApi, prompt: str, *, stream: bool = False, **fields: Any
) -> Exchange:
    """Ask, whatever comes of it. The form is always said: a server that streams unless it is told
    not to breaks one rule, and not those about answers in one piece.
    """
    route = probe.route(api.contract)
    return probe.call(route, probe.fields(**api.asked(prompt), stream=stream, **fields))


def ask(
    probe: HttpProbe, api: TextApi, prompt: str, *, stream: bool = False, **fields: Any
) -> Answer:
    """Ask and take the answer; a request that is refused, or not answered in the API's form,
    says nothing here: other rows are about that.
    """
    answer = answer_from(send(probe, api, prompt, stream=stream, **fields), api)
    if answer is None:
        probe.skip(f"an ordinary request got {describe(probe.log.transcripts[-1])}")
    return answer


def answer_from(exchange: Exchange, api: TextApi) -> Answer | None:
    """The answer in a response; None when there is none. That a stream is ended as it should be is
    a rule of its own.
    """
    stream, value = stream_of(exchange), answer_of(exchange)
    if stream is not None and (stream.failed or not stream.messages):
        return None
    if stream is None and (value is None or not choices_of(value)):
        return None
    return Answer(exchange, api, value, stream)


def same(found: str, script_text: str) -> bool:
    """Whether a text is the script's. The space at its start is the tokenizer's affair."""
    return found.lstrip(" ") == script_text.lstrip(" ")


def scripted_or_open(probe: HttpProbe, script: Script) -> str:
    """The script's prompt where the model knows it, else the open one."""
    return script.prompt if probe.declared.scripted else OPEN_PROMPT


def repeatable(probe: HttpProbe, api: TextApi, prompt: str, **fields: Any) -> str:
    """The greedy text of a prompt; skips the case on a model that does not repeat it."""
    text = ask(probe, api, prompt, **GREEDY, **fields).text
    same_again(probe, api, prompt, text, **fields)
    return text


def same_again(probe: HttpProbe, api: TextApi, prompt: str, text: str, **fields: Any) -> None:
    """Skip the case on a model whose greedy answer is not this text again. The first answer to a
    prompt may be the one that is off: what follows is computed from a cache, and rounded otherwise.
    """
    if ask(probe, api, prompt, **GREEDY, **fields).text != text:
        probe.skip("greedy answers of this target do not repeat")


def shown(text: str) -> str:
    """A text in a finding: its size only, because it may be an operator's."""
    return f"{len(text)} characters"
