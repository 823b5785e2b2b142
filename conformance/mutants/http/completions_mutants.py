"""Mutants of Completions: the shared ones, and those of what only it has."""

from __future__ import annotations

from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.completions import PATH
from conformance.mutants.http.mutant import bodies
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.shape import Shape
from conformance.mutants.http.text.mutants import text_mutants

Json = dict[str, Any]


def _itself(choice: Json) -> Json:
    return choice


SHAPE = Shape(
    PATH,
    "completions",
    "OE-HTTP-COMP",
    {
        "unary": "001",
        "chunk": "002",
        "finish_key": "003",
        "finish_value": "004",
        "after_finish": "005",
        "done": "006",
        "usage_asked": "007",
        "usage_unasked": "008",
        "unary_usage": "009",
        "own_end": "010",
        "cut": "011",
        "stop": "012",
        "stop_stream": "013",
        "released": "014",
        "characters": "015",
        "cut_character": "016",
        "same": "017",
        "same_usage": "018",
        "n": "019",
        "n_stream": "020",
        "logprobs": "021",
        "joined": "022",
        "logprobs_unasked": "023",
        "seed": "024",
        "sampling": "025",
        "prefix": "026",
        "zero": "027",
        "echo": "028",
        "batch": "029",
        "announced": "030",
        "ordinary": "031",
        "stream_error": "032",
        "one_piece": "033",
    },
    _itself,
    _itself,
    "text",
)


def _as_chat(body: Json) -> None:
    """The lists of the other API."""
    for choice in body["choices"]:
        if choice["logprobs"] is not None:
            choice["logprobs"] = {"content": []}


def _short_list(body: Json) -> None:
    for choice in body["choices"]:
        if choice["logprobs"] is not None:
            choice["logprobs"]["text_offset"].pop()


def _cumulative(body: Json) -> None:
    for choice in body["choices"]:
        if choice["logprobs"] is not None:
            tokens = choice["logprobs"]["tokens"]
            choice["logprobs"]["tokens"] = [
                "".join(tokens[: number + 1]) for number in range(len(tokens))
            ]


def _unasked_logprobs(json: Json, _: Ask) -> None:
    json.setdefault("logprobs", 1)


def _no_echo(json: Json, _: Ask) -> None:
    if json.pop("echo", False) and json.get("max_tokens") == 0:
        json["max_tokens"] = 1


def _first_prompt(json: Json, _: Ask) -> None:
    if isinstance(json.get("prompt"), list) and json["prompt"]:
        json["prompt"] = json["prompt"][0]


def _swapped(ask: Ask, reply: Reply) -> None:
    """The choices of a batch come back in the order in which they ended."""
    if isinstance((ask.json or {}).get("prompt"), list) and reply.status == 200:
        found = reply.body["choices"]
        for choice in found:
            choice["index"] = len(found) - 1 - choice["index"]
        found.reverse()


MUTANTS = (
    *text_mutants(SHAPE),
    SHAPE.mutant(
        "logprobs-as-chat",
        "logprobs",
        "Log probabilities come in the shape of chat.",
        on_reply=bodies(_as_chat),
        also=("joined",),
    ),
    SHAPE.mutant(
        "logprobs-lengths",
        "logprobs",
        "One of the lists is shorter than the others.",
        on_reply=bodies(_short_list),
    ),
    SHAPE.mutant(
        "logprobs-cumulative",
        "joined",
        "Each token repeats the text so far.",
        on_reply=bodies(_cumulative),
    ),
    SHAPE.mutant(
        "logprobs-unasked",
        "logprobs_unasked",
        "Log probabilities come without being asked for.",
        on_ask=_unasked_logprobs,
    ),
    SHAPE.mutant("echo-ignored", "echo", "echo is ignored.", on_ask=_no_echo),
    SHAPE.mutant(
        "batch-ignored", "batch", "Only the first prompt is answered.", on_ask=_first_prompt
    ),
    SHAPE.mutant(
        "batch-swapped", "batch", "Answers come in the order of their ends.", on_reply=_swapped
    ),
)
