"""Requests for whichever inference route a runtime has, for rules that no API owns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import OPEN_PROMPT
from conformance.runtimes.profile import Route
from conformance.runtimes.script import LOOP

# More than a sentence takes in any chat template that is known.
_PROMPT_TOKENS = 256
# The smallest limit that every text API takes.
_LEAST = 16
# Field that carries the prompt, and field that limits the answer, by contract; the first one that
# a runtime has is used.
_TEXT: Mapping[str, tuple[str, str]] = {
    "openai-chat": ("messages", "max_tokens"),
    "openai-completions": ("prompt", "max_tokens"),
    "openai-responses": ("input", "max_output_tokens"),
}


def text_route(probe: HttpProbe) -> Route:
    """The route of the first text API that the runtime has; skips the case without one."""
    routes = (probe.declared.route(contract) for contract in _TEXT)
    found = next((route for route in routes if route is not None), None)
    if found is None:
        probe.skip("no route for text on this target")
    return found


def prompt_field(route: Route) -> str:
    """Name of the required field that carries the prompt."""
    return _TEXT[route.contract][0]


def limit_field(route: Route) -> str:
    """Name of the field that limits the answer."""
    return _TEXT[route.contract][1]


def prompt_value(route: Route, prompt: str) -> Any:
    """A prompt as the field carries it."""
    if prompt_field(route) == "messages":
        return [{"role": "user", "content": prompt}]
    return prompt


def context_of(probe: HttpProbe) -> int:
    """The longest context that the operator or the profile states, in tokens; 0 = neither does."""
    return probe.declared.context_tokens or probe.declared.runtime.limits.get("context_tokens", 0)


def fitting(probe: HttpProbe, tokens: int) -> int:
    """So many tokens of an answer, or as many as a stated context has room for beside a prompt of
    one sentence: there are servers that refuse what cannot fit.
    """
    context = context_of(probe)
    room = max(context // 2, context - _PROMPT_TOKENS)
    return min(tokens, max(room, _LEAST)) if context else tokens


def ordinary_body(
    probe: HttpProbe, route: Route, *, tokens: int = 8, prompt: str = ""
) -> dict[str, Any]:
    """A request that every server of the API takes."""
    text = prompt or (LOOP.prompt if probe.declared.scripted else OPEN_PROMPT)
    return probe.fields(
        **{prompt_field(route): prompt_value(route, text), limit_field(route): tokens},
        temperature=0,
    )
