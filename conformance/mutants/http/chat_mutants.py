"""Mutants of Chat Completions: the shared ones, and those of what only it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.chat import PATH
from conformance.mutants.http.mutant import Change, bodies
from conformance.mutants.http.shape import Shape, choices
from conformance.mutants.http.text.mutants import text_mutants

Json = dict[str, Any]

SHAPE = Shape(
    PATH,
    "chat",
    "OE-HTTP-CHAT",
    {
        "unary": "001",
        "chunk": "002",
        "roles": "003",
        "finish_key": "004",
        "finish_value": "005",
        "after_finish": "006",
        "done": "007",
        "usage_asked": "008",
        "usage_unasked": "009",
        "unary_usage": "010",
        "own_end": "011",
        "cut": "012",
        "stop": "013",
        "stop_stream": "014",
        "released": "015",
        "characters": "016",
        "cut_character": "017",
        "same": "018",
        "same_usage": "019",
        "n": "020",
        "n_stream": "021",
        "logprobs": "022",
        "joined": "023",
        "alternatives": "024",
        "logprobs_unasked": "025",
        "seed": "026",
        "sampling": "027",
        "schema": "028",
        "bad_schema": "029",
        "prefix": "030",
        "zero": "031",
        "announced": "032",
        "content_key": "033",
        "ordinary": "034",
        "stream_error": "035",
        "one_piece": "036",
    },
    lambda choice: choice["delta"],
    lambda choice: choice["message"],
    "content",
)


def _no_role(choice: Json) -> None:
    choice["delta"].pop("role", None)


def _bot(body: Json) -> None:
    for choice in body["choices"]:
        choice["message"]["role"] = "bot"


def _logprobs(change: Callable[[list[Json]], list[Json]]) -> Change:
    def one(body: Json) -> None:
        for choice in body["choices"]:
            if choice["logprobs"] is not None:
                choice["logprobs"]["content"] = change(choice["logprobs"]["content"])

    return bodies(one)


def _merged(entries: list[Json]) -> list[Json]:
    """A character of several tokens gets one entry."""
    return [entry for entry in entries if entry["bytes"][0] < 0x80 or entry["bytes"] == [0x80]]


def _cumulative(entries: list[Json]) -> list[Json]:
    whole: list[int] = []
    for entry in entries:
        whole = whole + entry["bytes"]
        entry["bytes"] = list(whole)
    return entries


def _unsorted(entries: list[Json]) -> list[Json]:
    for entry in entries:
        entry["top_logprobs"].reverse()
    return entries


def _too_many(entries: list[Json]) -> list[Json]:
    for entry in entries:
        entry["top_logprobs"] += entry["top_logprobs"][-1:]
    return entries


def _unasked_logprobs(json: Json, _: Ask) -> None:
    json.setdefault("logprobs", True)


def _schema_of(json: Json) -> Any:
    wanted = json.get("response_format")
    return wanted["json_schema"]["schema"] if isinstance(wanted, dict) else None


def _ignored_schema(json: Json, _: Ask) -> None:
    schema = _schema_of(json)
    if isinstance(schema, dict) and schema.get("type") == "object":
        del json["response_format"]


def _bad_schema_ignored(json: Json, _: Ask) -> None:
    schema = _schema_of(json)
    if schema is not None and not (isinstance(schema, dict) and schema.get("type") == "object"):
        del json["response_format"]


def _no_content(body: Json) -> None:
    for choice in body["choices"]:
        if not choice["message"]["content"]:
            del choice["message"]["content"]


MUTANTS = (
    *text_mutants(SHAPE),
    SHAPE.mutant("no-role", "roles", "A stream never says who speaks.", on_reply=choices(_no_role)),
    SHAPE.mutant(
        "role-bot", "roles", "The answer's role is one that no client knows.", on_reply=bodies(_bot)
    ),
    SHAPE.mutant(
        "logprobs-merged",
        "logprobs",
        "A character of several tokens gets one entry.",
        on_reply=_logprobs(_merged),
    ),
    SHAPE.mutant(
        "logprobs-cumulative",
        "joined",
        "Each entry repeats the text so far.",
        on_reply=_logprobs(_cumulative),
    ),
    SHAPE.mutant(
        "logprobs-unsorted",
        "alternatives",
        "Alternatives come in the order of their ids.",
        on_reply=_logprobs(_unsorted),
    ),
    SHAPE.mutant(
        "logprobs-too-many",
        "alternatives",
        "One alternative more than asked for.",
        on_reply=_logprobs(_too_many),
    ),
    SHAPE.mutant(
        "logprobs-unasked",
        "logprobs_unasked",
        "Log probabilities come without being asked for.",
        on_ask=_unasked_logprobs,
    ),
    SHAPE.mutant(
        "schema-ignored", "schema", "The response format is ignored.", on_ask=_ignored_schema
    ),
    SHAPE.mutant(
        "bad-schema-ignored",
        "bad_schema",
        "A schema that cannot be used is ignored.",
        on_ask=_bad_schema_ignored,
    ),
    SHAPE.mutant(
        "no-content-key",
        "content_key",
        "An empty answer has no content at all.",
        on_reply=bodies(_no_content),
    ),
)
