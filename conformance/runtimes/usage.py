"""Token counts as a response reports them, wherever its dialect puts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.ndjson import parse_ndjson
from conformance.http.sse import parse_sse

SSE, NDJSON = "text/event-stream", "application/x-ndjson"


def objects(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """The JSON objects of a response, in order: one for a plain body, one for each event."""
    if exchange.media_type == SSE:
        events = parse_sse(exchange.body).events
        yield from (value for event in events if (value := event.fields) is not None)
    elif exchange.media_type == NDJSON:
        yield from (line.value for line in parse_ndjson(exchange.body).lines)
    elif isinstance(exchange.json, dict):
        yield exchange.json


def tokens_of(exchange: Exchange) -> int:
    """Tokens that a call cost as reported, else the number of its messages."""
    count = last = 0
    for value in objects(exchange):
        count += 1
        inner = value.get("response")
        for holder in (value, inner if isinstance(inner, dict) else {}):
            usage = holder.get("usage")
            if isinstance(usage, dict):
                last = max(last, _number(usage.get("total_tokens")))
        last = max(last, _number(value.get("eval_count")))
    return last or count


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
