"""Faults of the objects that answers in one piece are, and of their counts."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import bodies
from conformance.mutants.http.responses_api.mutant import ENDS, Json, mutant, values


def _object(value: Json) -> None:
    value["object"] = "chat.completion"


def _no_created(value: Json) -> None:
    del value["created_at"]


def _status(value: Json) -> None:
    value["status"] = "done"


def _total(value: Json) -> None:
    value["usage"]["total_tokens"] -= 1


def _no_usage_at_the_end(value: Json) -> None:
    if value["type"] in ENDS:
        del value["response"]["usage"]


def _complete(value: Json) -> None:
    value |= {"status": "completed", "incomplete_details": None}


def _streams_unless_told(json: Json, _: Ask) -> None:
    json.setdefault("stream", True)


def _no_reason(value: Json) -> None:
    value["incomplete_details"] = None


MUTANTS = (
    mutant("object", "001", "The object is that of chat.", on_reply=bodies(_object)),
    mutant("no-created-at", "001", "The time is missing.", on_reply=bodies(_no_created)),
    mutant(
        "status-done",
        "002",
        "The status is a word of the server's own.",
        on_reply=bodies(_status),
        also=("004", "013", "015"),
    ),
    mutant("total", "003", "The total does not add up.", on_reply=bodies(_total)),
    mutant(
        "no-usage-in-streams",
        "003",
        "The last event carries no usage.",
        on_reply=values(_no_usage_at_the_end),
        also=("OE-HTTP-SSE-007",),
    ),
    mutant(
        "cut-is-completed",
        "004",
        "A cut answer in one piece is called completed.",
        on_reply=bodies(_complete),
        also=("013",),
    ),
    mutant(
        "streams-unless-told",
        "021",
        "A request that does not say stream gets one.",
        on_ask=_streams_unless_told,
    ),
    mutant(
        "no-reason", "004", "An incomplete answer does not say why.", on_reply=bodies(_no_reason)
    ),
)
