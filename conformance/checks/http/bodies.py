"""Requests for text in the form of whichever contract a route promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.checks.http.inference import context_of, fitting, ordinary_body
from conformance.checks.http.ollama import body_of
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import OPEN_PROMPT
from conformance.http.exchange import Exchange
from conformance.runtimes.profile import Route
from conformance.runtimes.script import LOOP

# Tokens of a stream that lasts longer than whatever is asked beside it.
LONG = 2048
# What models that nobody knows answer at length: one that follows instructions, and one that goes
# on with a text. Small ones count to a thousand in two words.
_TOLD = "Write a very long story about a family that sails around the world."
_BEGUN = f"{', '.join(map(str, range(1, 16)))},"
_GO_ON = frozenset({"openai-completions", "tgi-native"})


def body_for(
    probe: HttpProbe, route: Route, *, tokens: int, stream: bool = False, prompt: str = ""
) -> dict[str, Any]:
    """A greedy request for at most so many tokens that every server of the API takes; without a
    prompt one whose answer does not end before the limit, as far as that is known.
    """
    text = prompt or (LOOP.prompt if probe.declared.scripted else OPEN_PROMPT)
    match route.contract:
        case "ollama-native":
            return body_of(probe, route, text, stream=stream, num_predict=tokens)
        case "tgi-native":
            parameters = {"details": True, "do_sample": False, "max_new_tokens": tokens}
            return {"inputs": text, "parameters": parameters}
        case "lmstudio-native":
            chosen: dict[str, Any] = {"max_output_tokens": tokens, "temperature": 0, "store": False}
            return probe.fields(input=text, stream=stream, **chosen)
        case _:
            asked = ordinary_body(probe, route, tokens=tokens, prompt=text)
            return asked | ({"stream": True} if stream else {})


def long_stream(probe: HttpProbe, route: Route, *, tokens: int = LONG) -> dict[str, Any]:
    """A stream that lasts, as long as a stated context has room for."""
    open_prompt = _BEGUN if route.contract in _GO_ON else _TOLD
    prompt = LOOP.prompt if probe.declared.scripted else open_prompt
    return body_for(probe, route, tokens=fitting(probe, tokens), stream=True, prompt=prompt)


def unless_refused(probe: HttpProbe, streams: Sequence[Exchange]) -> None:
    """Skips the case when none of the streams was taken: nothing was begun that could be left."""
    statuses = [each.status for each in streams]
    refused = [each for each in statuses if each is not None and not 200 <= each < 300]
    if refused and len(refused) == len(statuses):
        hint = "" if context_of(probe) else "; is the context shorter (--context-tokens)?"
        probe.skip(f"the long stream was refused with status {refused[0]}{hint}")
