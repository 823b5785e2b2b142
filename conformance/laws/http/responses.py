"""The laws of Responses."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.responses_order import index_problem, order_problem, text_problem
from conformance.laws.http.responses_view import (
    CONTRACT,
    ENDS,
    STATUSES,
    ResponseStream,
    items_of,
    response_of,
    response_stream,
    text_of,
)
from conformance.laws.http.view import is_count, one_of, undisturbed
from conformance.runtimes.declared import HttpDeclared

_FINISHED = frozenset(ENDS.values())


@http_law("OE-HTTP-RESP-001", CONTRACT)
def shape(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The object that an answer in one piece is."""
    value = response_of(exchange)
    if value is None:
        return None
    return _shape(value)


def _shape(value: dict[str, Any]) -> Ruling:
    if value.get("object") != "response":
        return Finding("object response", repr(value.get("object"))[:40])
    for name in ("id", "model", "status"):
        if not isinstance(value.get(name), str) or not value[name]:
            return Finding(f"a text {name}", repr(value.get(name))[:40])
    created = value.get("created_at")
    if isinstance(created, bool) or not isinstance(created, int | float):
        return Finding("created_at in seconds", repr(created)[:40])
    output = value.get("output")
    if not isinstance(output, list) or len(items_of(value)) != len(output):
        return Finding("a list of output items", type(output).__name__)
    if any(not isinstance(item.get("type"), str) for item in items_of(value)):
        return Finding("a type of each output item", "none")
    return True


@http_law("OE-HTTP-RESP-002", CONTRACT)
def status(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The statuses that there are."""
    value, stream = response_of(exchange), response_stream(exchange)
    if value is not None and "status" in value:
        found = value["status"]
        return True if one_of(found, _FINISHED) else Finding("a finished status", repr(found)[:40])
    if stream is None:
        return None
    judged = False
    for event in stream.events:
        found = event.response.get("status")
        if found is None:
            continue
        judged = True
        if not one_of(found, STATUSES):
            return Finding("a status of the API", repr(found)[:40], event.number)
    return True if judged else None


@http_law("OE-HTTP-RESP-003", CONTRACT)
def usage(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """A finished response tells what it cost."""
    value, stream = response_of(exchange), response_stream(exchange)
    if stream is not None and stream.last is not None:
        value = stream.last.response
    if value is None or not one_of(value.get("status"), {"completed", "incomplete"}):
        return None
    found = value.get("usage")
    if not isinstance(found, dict):
        return Finding("usage", "none")
    counts: list[Any] = [
        found.get(name) for name in ("input_tokens", "output_tokens", "total_tokens")
    ]
    if not all(is_count(count) for count in counts):
        return Finding("counts of input, output and all tokens", repr(counts)[:60])
    asked, answered, total = counts
    if asked + answered != total:
        return Finding("counts that add up", f"{asked} + {answered} is not {total}")
    return True


@http_law("OE-HTTP-RESP-005", CONTRACT)
def names(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The name of an event is its type."""
    stream = response_stream(exchange)
    if stream is None or not stream.events:
        return None
    for event in stream.events:
        if event is stream.error:
            continue
        if not event.name:
            return Finding("a name of each event", "none", event.number)
        if event.value.get("type") != event.name:
            found = repr(event.value.get("type"))[:60]
            return Finding(f"the type {event.name[:60]}", found, event.number)
    return True


@http_law("OE-HTTP-RESP-006", CONTRACT)
def numbers(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Numbered without a gap."""
    stream = response_stream(exchange)
    if stream is None or not stream.events:
        return None
    last: int | None = None
    for event in stream.events:
        number = event.value.get("sequence_number")
        if not is_count(number):
            return Finding("a sequence_number", repr(number)[:40], event.number)
        if last is not None and number != last + 1:
            return Finding(f"sequence_number {last + 1}", f"{number}", event.number)
        last = number
    return True


@http_law("OE-HTTP-RESP-007", CONTRACT)
def order(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """What may follow what."""
    stream = response_stream(exchange)
    if stream is None or not stream.events:
        return None
    return order_problem(stream) or True


@http_law("OE-HTTP-RESP-008", CONTRACT)
def end(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """One end, and last."""
    stream = response_stream(exchange)
    if stream is None or not undisturbed(exchange) or not stream.events:
        return None
    if stream.done:
        return Finding("no [DONE]", "one", stream.done[0])
    if stream.error is not None:
        return None  # what follows an error is a rule of its own
    ends = list(stream.of(*ENDS))
    if len(ends) != 1:
        return Finding("one event that ends the response", f"{len(ends)}")
    if ends[0] is not stream.events[-1]:
        return Finding("the end as the last event", "events after it", ends[0].number)
    return True


@http_law("OE-HTTP-RESP-009", CONTRACT)
def end_status(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The end is called as the status."""
    stream = response_stream(exchange)
    last = None if stream is None else stream.last
    if last is None or "status" not in last.response:
        return None
    wanted, found = ENDS[last.kind], last.response["status"]
    if found != wanted:
        return Finding(f"the status {wanted}", repr(found)[:40], last.number)
    return True


@http_law("OE-HTTP-RESP-010", CONTRACT)
def texts(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Deltas make up what is said at the end."""
    stream = response_stream(exchange)
    if stream is None or not any(stream.of("response.output_text.delta")):
        return None
    last = stream.last
    final = text_of(last.response) if last is not None and items_of(last.response) else None
    return text_problem(stream, final) or True


@http_law("OE-HTTP-RESP-011", CONTRACT)
def indices(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Events say what they are about."""
    stream = response_stream(exchange)
    if stream is None or not any(stream.of("response.output_item.added")):
        return None
    return index_problem(stream) or True


@http_law("OE-HTTP-RESP-012", CONTRACT)
def created(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The first event introduces the response, the last is about the same one."""
    stream = response_stream(exchange)
    if stream is None or not stream.events:
        return None
    first = stream.events[0]
    if first.kind != "response.created":
        return None  # their order is a rule of its own
    value = first.response
    for name in ("id", "model", "status"):
        if not isinstance(value.get(name), str) or not value[name]:
            return Finding(f"a text {name}", repr(value.get(name))[:40], first.number)
    if isinstance(value.get("created_at"), bool | str | None):
        return Finding("created_at in seconds", "none", first.number)
    if value["status"] in _FINISHED:
        return Finding("a status before the end", repr(value["status"])[:40], first.number)
    return _same_id(stream, value["id"])


def _same_id(stream: ResponseStream, name: str) -> Ruling:
    last = stream.last
    if last is not None and last.response.get("id") != name:
        return Finding("the id of response.created", "another", last.number)
    return True


LAWS = (
    shape,
    status,
    usage,
    names,
    numbers,
    order,
    end,
    end_status,
    texts,
    indices,
    created,
)
