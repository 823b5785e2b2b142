"""The automaton of a stream of Responses: what may follow what, and what belongs to what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformance.laws.http.law import Finding
from conformance.laws.http.responses_view import ENDS, NamedEvent, ResponseStream

_START = ("response.created", "response.queued", "response.in_progress")
_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
_PART, _PART_DONE = "response.content_part.added", "response.content_part.done"
_DELTA, _TEXT_DONE = "response.output_text.delta", "response.output_text.done"
# Types that this suite knows nothing about (tools, reasoning) may stand anywhere after the start.
_KNOWN = frozenset({*_START, _ADDED, _ITEM_DONE, _PART, _PART_DONE, _DELTA, _TEXT_DONE, *ENDS})


@dataclass(slots=True)
class _State:
    """Where a stream is. items, parts, texts: how many are open."""

    started: bool = False
    ended: bool = False
    items: int = 0
    parts: int = 0
    texts: int = 0
    deltas: list[str] = field(default_factory=list)


def order_problem(stream: ResponseStream) -> Finding | None:
    """The first event that comes out of order; None when none does."""
    state = _State()
    for event in stream.events:
        problem = _step(state, event)
        if problem is not None:
            return Finding(problem, event.kind[:60], event.number)
    # A failure ends whatever was open.
    if state.ended and state.items and not stream.failed:
        return Finding("response.output_item.done for each item", f"{state.items} open items")
    return None


def _step(state: _State, event: NamedEvent) -> str | None:
    """What should have come instead; None when the event is in order. Counts what is open, because
    servers without indices do not say which one an event means.
    """
    kind = event.kind
    if kind == "error":
        return None
    if state.ended:
        return "nothing after the end of the response"
    if not state.started:
        state.started = True
        return None if kind == _START[0] else "response.created first"
    if kind == _START[0]:
        return "response.created once"
    match kind:
        case "response.output_item.added":
            state.items += 1
        case "response.content_part.added" if state.items:
            state.parts += 1
            state.texts += _is_text(event)
        case "response.output_text.delta" if state.texts:
            pass
        case "response.output_text.done" if state.texts:
            state.texts -= 1
        case "response.content_part.done" if state.parts and state.texts < state.parts:
            state.parts -= 1
        case "response.output_item.done" if state.parts < state.items:
            state.items -= 1
        case _ if kind in ENDS:
            state.ended = True
        case _ if kind in _KNOWN - set(_START):
            return "what it is about opened before it"
    return None


def _is_text(event: NamedEvent) -> bool:
    """Whether a part is text; a refusal or a reasoning part has events of its own."""
    part = event.value.get("part")
    return not isinstance(part, dict) or part.get("type", "output_text") == "output_text"


def text_problem(stream: ResponseStream, final: str | None) -> Finding | None:
    """Where the deltas of a part are not its text. final: the text of the last event's response,
    None when it carries none.
    """
    parts: dict[tuple[str, str], str] = {}
    for event in stream.of(_DELTA, _TEXT_DONE, _PART_DONE):
        key = (repr(event.value.get("output_index", 0)), repr(event.value.get("content_index", 0)))
        made = parts.get(key, "")
        if event.kind == _DELTA:
            delta = event.value.get("delta")
            if not isinstance(delta, str):
                return Finding("a text as delta", type(delta).__name__, event.number)
            parts[key] = made + delta
            continue
        part = event.value.get("part")
        said = part if event.kind == _PART_DONE and isinstance(part, dict) else event.value
        text = said.get("text")
        if text != made:
            size = len(text) if isinstance(text, str) else "no"
            wanted = f"the {len(made)} characters of the deltas"
            return Finding(wanted, f"{size} characters", event.number)
    whole = "".join(parts.values())
    if final is not None and final != whole:
        return Finding(f"the {len(whole)} characters of the deltas", f"{len(final)} at the end")
    return None


def index_problem(stream: ResponseStream) -> Finding | None:
    """Where an event does not say what it is about; None when all do."""
    opened: dict[Any, Any] = {}
    for event in stream.events:
        value, kind = event.value, event.kind
        if kind not in {_ADDED, _ITEM_DONE, _PART, _PART_DONE, _DELTA, _TEXT_DONE}:
            continue
        index = value.get("output_index")
        if not isinstance(index, int) or isinstance(index, bool):
            return Finding("a number output_index", repr(index)[:20], event.number)
        item = value.get("item")
        name = item.get("id") if isinstance(item, dict) else value.get("item_id")
        if not isinstance(name, str) or not name:
            return Finding("the id of the item", repr(name)[:20], event.number)
        if opened.setdefault(index, name) != name:
            return Finding("the id of the item that has this index", "another", event.number)
        if kind in {_ADDED, _ITEM_DONE}:
            continue
        content = value.get("content_index")
        if not isinstance(content, int) or isinstance(content, bool):
            return Finding("a number content_index", repr(content)[:20], event.number)
    return None
