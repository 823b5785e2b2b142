"""Mutants of what the two text APIs share: made for each API, with the ids of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.chat import DONE
from conformance.mutants.http.mutant import Change, HttpMutant, all_events, bodies, each_event
from conformance.mutants.http.reply import Event, Reply

Json = dict[str, Any]
# Seeds of which one gives heads and the other tails.
_TURNS = (1, 4)
_PING_PONG = 20  # tokens of the answers that are compared both ways
# Rows of http-common about what the profile states of a stream.
_TERMINATOR, _USAGE = "OE-HTTP-SSE-006", "OE-HTTP-SSE-007"
UNBEGUN = "\u241e"  # ends the stop strings that only begin in an answer


@dataclass(frozen=True, slots=True)
class Shape:
    """One API. ids: the number of a row by what it is about. holder: the object of a choice that
    carries its text, in a stream and in one piece; field: the text's name in it.
    """

    path: str
    name: str
    group: str
    ids: Mapping[str, str]
    part: Callable[[Json], Json]
    whole: Callable[[Json], Json]
    field: str

    def id(self, about: str) -> str:
        """The row's id."""
        return f"{self.group}-{self.ids[about]}"

    def mutant(
        self,
        name: str,
        about: str,
        story: str,
        *,
        on_ask: Callable[[Json, Ask], None] | None = None,
        on_reply: Change | None = None,
        also: tuple[str, ...] = (),
    ) -> HttpMutant:
        """A mutant of this API alone."""
        return HttpMutant(
            f"{self.name}-{name}",
            self.id(about),
            story,
            on_ask=None if on_ask is None else asking(self.path, on_ask),
            on_reply=None if on_reply is None else on_path(self.path, on_reply),
            also=frozenset(
                each if each.startswith("OE-") else self.id(each)
                for each in also
                if each.startswith("OE-") or each in self.ids
            ),
        )

    def text(self, choice: Json) -> str:
        """Text of a choice of a stream."""
        return str(self.part(choice).get(self.field) or "")


def asking(path: str, change: Callable[[Json, Ask], None]) -> Callable[[Ask], None]:
    """Change the JSON of requests for one path."""

    def on_ask(ask: Ask) -> None:
        if ask.json is not None and ask.path == path:
            change(ask.json, ask)

    return on_ask


def on_path(path: str, change: Change) -> Change:
    """Change the answers of one path only."""

    def on_reply(ask: Ask, reply: Reply) -> Reply | None:
        return change(ask, reply) if ask.path == path else None

    return on_reply


def messages(change: Callable[[Json], None]) -> Change:
    """Change each JSON message of a stream."""

    def one(event: Event) -> Event:
        if isinstance(event.data, dict):
            change(event.data)
        return event

    return each_event(one)


def choices(change: Callable[[Json], None]) -> Change:
    """Change each choice of a stream."""

    def one(value: Json) -> None:
        for choice in value["choices"]:
            change(choice)

    return messages(one)


def is_finish(event: Event) -> bool:
    """Whether a message ends a choice."""
    return isinstance(event.data, dict) and any(
        choice["finish_reason"] is not None for choice in event.data["choices"]
    )


def finish(old: str, new: str, unless: str = "") -> Change:
    """Another finish_reason, in both forms; not in requests that have the field `unless`."""

    def swap(choice: Json) -> None:
        if choice.get("finish_reason") == old:
            choice["finish_reason"] = new

    def swap_all(body: Json) -> None:
        for choice in body["choices"]:
            swap(choice)

    parts, whole = choices(swap), bodies(swap_all)

    def on_reply(ask: Ask, reply: Reply) -> None:
        if not unless or unless not in (ask.json or {}):
            parts(ask, reply)
            whole(ask, reply)

    return on_reply


def _object(value: Json) -> None:
    value["object"] = "list"


def _created(value: Json) -> None:
    value["created"] = "now"


def _new_ids(events: list[Event]) -> list[Event]:
    for number, event in enumerate(events):
        if isinstance(event.data, dict):
            event.data["id"] += f"-{number}"
    return events


def _no_finish_key(choice: Json) -> None:
    if choice["finish_reason"] is None:
        del choice["finish_reason"]


def _empty_finish(choice: Json) -> None:
    if choice["finish_reason"] is None:
        choice["finish_reason"] = ""


def _finish_twice(events: list[Event]) -> list[Event]:
    return [again for event in events for again in ([event] * (2 if is_finish(event) else 1))]


def _not_done(event: Event) -> Event | None:
    return None if event.data == DONE else event


def _done_twice(events: list[Event]) -> list[Event]:
    return [*events, Event(DONE)]


def _usage_on_last_choice(events: list[Event]) -> list[Event]:
    extra = [e for e in events if isinstance(e.data, dict) and not e.data["choices"]]
    for event in extra:
        events.remove(event)
        last = [each for each in events if is_finish(each)][-1]
        last.data["usage"] = event.data["usage"]
    return events


def _usage_everywhere(value: Json) -> None:
    if "usage" in value:
        value["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _unasked_usage(json: Json, ask: Ask) -> None:
    if ask.stream and not ask.usage_wanted:
        json["stream_options"] = {"include_usage": True}


def _usage_for_any_options(json: Json, ask: Ask) -> None:
    if ask.stream and json.get("stream_options") is not None:
        json["stream_options"] = {"include_usage": True}


def _total(body: Json) -> None:
    body["usage"]["total_tokens"] = body["usage"]["prompt_tokens"]


def _no_usage(body: Json) -> None:
    del body["usage"]


def _one_more(json: Json, _: Ask) -> None:
    limit = json.get("max_tokens")
    if isinstance(limit, int) and limit > 0:
        json["max_tokens"] = limit + 1


def _no_stop(json: Json, ask: Ask) -> None:
    if not ask.stream:
        json.pop("stop", None)


def _no_stop_in_streams(json: Json, ask: Ask) -> None:
    if ask.stream:
        json.pop("stop", None)


def _stop_by_token(json: Json, _: Ask) -> None:
    """Only a stop string that lies within one token is seen."""
    stop = json.get("stop")
    if isinstance(stop, str) and " " in stop.strip():
        del json["stop"]


def _miscounted(value: Json) -> None:
    usage = value.get("usage")
    if usage:
        usage["completion_tokens"] -= 1
        usage["total_tokens"] -= 1


def _one_choice(body: Json) -> None:
    del body["choices"][1:]


def _n_alone(ask: Ask, reply: Reply) -> None:
    if "n" in (ask.json or {}):
        bodies(_one_choice)(ask, reply)


def _first_index(events: list[Event]) -> list[Event]:
    return [
        event
        for event in events
        if not isinstance(event.data, dict)
        or all(choice["index"] == 0 for choice in event.data["choices"])
    ]


def _ignored_seed(json: Json, ask: Ask) -> None:
    """Seeds that give one word and the other in turn: a coin could show the same four times."""
    if "seed" in json:
        ask.state["calls"] = calls = ask.state.get("calls", 0) + 1
        json["seed"] = _TURNS[calls % 2]


def _greedy(json: Json, _: Ask) -> None:
    value = json.get("temperature", 1)
    if isinstance(value, int | float) and 0 < value <= 2:
        json["temperature"] = 0


def _zero_is(limit: int | None) -> Callable[[Json, Ask], None]:
    def change(json: Json, _: Ask) -> None:
        if json.get("max_tokens") == 0 and not json.get("echo"):
            json["max_tokens"] = limit

    return change


def _zero_crashes(ask: Ask, reply: Reply) -> None:
    if (ask.json or {}).get("max_tokens") == 0 and reply.status == 400:
        reply.status = 500


def _foreign_index(ask: Ask, reply: Reply) -> None:
    if reply.events is None or "n" in (ask.json or {}):
        return
    events = list(reply.events)
    first = events[0].data
    choice = {**first["choices"][0], "index": 7, "finish_reason": "stop"}
    reply.events = iter([events[0], Event({**first, "choices": [choice]}), *events[1:]])


def _no_streams(_: Ask, reply: Reply) -> Reply | None:
    if reply.events is None:
        return None
    error = {"message": "no streams", "type": "server_error", "param": None, "code": None}
    return Reply(500, {"error": error})


def text_changes(shape: Shape) -> Mapping[str, Change]:
    """The changes that touch the text itself."""

    def has_text(event: Event) -> bool:
        return isinstance(event.data, dict) and any(
            shape.text(choice) for choice in event.data["choices"]
        )

    def finish_early(events: list[Event]) -> list[Event]:
        for at in [number for number, event in enumerate(events) if is_finish(event)]:
            if has_text(events[at - 1]):
                events[at - 1], events[at] = events[at], events[at - 1]
        return events

    def leak(ask: Ask, reply: Reply) -> None:
        stop = (ask.json or {}).get("stop")
        if reply.events is None or not isinstance(stop, str) or UNBEGUN in stop:
            return
        events = list(reply.events)
        at = next(number for number, event in enumerate(events) if is_finish(event))
        old = events[at].data["choices"][0]
        choice = {**old, "finish_reason": None}
        if "delta" in choice:
            choice["delta"] = {}
        shape.part(choice)[shape.field] = stop[0]
        events.insert(at, Event({**events[at].data, "choices": [choice]}))
        reply.events = iter(events)

    def held_for_ever(ask: Ask, reply: Reply) -> None:
        stop = (ask.json or {}).get("stop")
        if not isinstance(stop, str) or UNBEGUN not in stop:
            return
        begun = stop[:-1]
        if reply.events is not None:
            events = list(reply.events)
            last = [event for event in events if has_text(event)][-1]
            holder = shape.part(last.data["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)
            reply.events = iter(events)
        elif reply.status == 200:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)

    def half_characters(choice: Json) -> None:
        text = shape.text(choice)
        if text:
            shape.part(choice)[shape.field] = text.replace("\U0001f600", "\ufffd" * 4)

    def replaced_at_end(ask: Ask, reply: Reply) -> None:
        if reply.events is None and reply.status == 200 and "EMO" in str(ask.json or {}):
            for choice in reply.body.get("choices", ()):
                holder = shape.whole(choice)
                if choice["finish_reason"] == "length" and not holder[shape.field]:
                    holder[shape.field] = "\ufffd"

    def loses_a_token(events: list[Event]) -> list[Event]:
        texts = [event for event in events if has_text(event)]
        if len(texts) == _PING_PONG:
            events.remove(texts[15])
        return events

    def sliding(ask: Ask, reply: Reply) -> None:
        asked = ask.json or {}
        if asked.get("max_tokens") == 9 and reply.status == 200 and reply.events is None:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].replace(" ping", "", 1)

    return {
        "finish-early": all_events(finish_early),
        "stop-leaks": leak,
        "held-for-ever": held_for_ever,
        "half-characters": choices(half_characters),
        "cut-characters-differ": replaced_at_end,
        "stream-loses-a-token": all_events(loses_a_token),
        "sliding-window": sliding,
    }


def text_mutants(shape: Shape) -> tuple[HttpMutant, ...]:
    """Every shared mutant for one API."""
    make, text = shape.mutant, text_changes(shape)
    ends = ("own_end", "stop", "stop_stream")
    everywhere = ("finish_value", "after_finish", "cut", "same", *ends)
    return (
        make(
            "object", "unary", "An answer calls itself by another name.", on_reply=bodies(_object)
        ),
        make("created", "unary", "The time of creation is a text.", on_reply=bodies(_created)),
        make(
            "chunk-object",
            "chunk",
            "Messages of a stream call themselves by another name.",
            on_reply=messages(_object),
        ),
        make(
            "chunk-ids",
            "chunk",
            "Each message of a stream gets an id of its own.",
            on_reply=all_events(_new_ids),
        ),
        make(
            "no-finish-key",
            "finish_key",
            "Messages before the last leave finish_reason out.",
            on_reply=choices(_no_finish_key),
        ),
        make(
            "empty-finish",
            "finish_key",
            "finish_reason is an empty text until the end.",
            on_reply=choices(_empty_finish),
            also=everywhere,
        ),
        make(
            "finish-twice",
            "finish_key",
            "The last message is sent twice.",
            on_reply=all_events(_finish_twice),
        ),
        make(
            "finish-eos",
            "finish_value",
            "The end token's name is the reason.",
            on_reply=finish("stop", "eos"),
            also=ends,
        ),
        make(
            "finish-early",
            "after_finish",
            "The reason overtakes the last text.",
            on_reply=text["finish-early"],
        ),
        make(
            "no-done",
            "done",
            "A stream ends without [DONE].",
            on_reply=each_event(_not_done),
            also=(_TERMINATOR,),
        ),
        make(
            "done-twice",
            "done",
            "[DONE] is sent by two layers.",
            on_reply=all_events(_done_twice),
        ),
        make(
            "usage-on-last-choice",
            "usage_asked",
            "Usage comes beside the last choice.",
            on_reply=all_events(_usage_on_last_choice),
            also=(_USAGE,),
        ),
        make(
            "usage-everywhere",
            "usage_asked",
            "Every message carries usage, most of it zero.",
            on_reply=messages(_usage_everywhere),
            also=("same_usage", _USAGE),
        ),
        make(
            "usage-unasked",
            "usage_unasked",
            "Usage comes without being asked for.",
            on_ask=_unasked_usage,
            also=(_USAGE,),
        ),
        make(
            "usage-for-empty-options",
            "usage_unasked",
            "Any stream_options bring usage.",
            on_ask=_usage_for_any_options,
            also=(_USAGE,),
        ),
        make("usage-total", "unary_usage", "The total is too small.", on_reply=bodies(_total)),
        make(
            "no-usage",
            "unary_usage",
            "An answer does not say what it cost.",
            on_reply=bodies(_no_usage),
        ),
        make(
            "end-is-length",
            "own_end",
            "The model's own end is reported as a limit.",
            on_reply=finish("stop", "length", unless="stop"),
            also=("logprobs",),
        ),
        make(
            "cut-is-stop",
            "cut",
            "A limit is reported as the model's own end.",
            on_reply=finish("length", "stop"),
        ),
        make("one-token-more", "cut", "One token too many is generated.", on_ask=_one_more),
        make("stop-ignored", "stop", "Stop strings are ignored.", on_ask=_no_stop),
        make(
            "stop-by-token",
            "stop",
            "Stop strings are compared with single tokens.",
            on_ask=_stop_by_token,
            also=("stop_stream",),
        ),
        make(
            "stop-ignored-in-streams",
            "stop_stream",
            "Stop strings are ignored in streams.",
            on_ask=_no_stop_in_streams,
        ),
        make(
            "stop-leaks",
            "stop_stream",
            "The beginning of a stop string is sent.",
            on_reply=text["stop-leaks"],
        ),
        make(
            "held-for-ever",
            "released",
            "What is held back is lost at the end.",
            on_reply=text["held-for-ever"],
        ),
        make(
            "half-characters",
            "characters",
            "Bytes of one character are decoded token by token.",
            on_reply=text["half-characters"],
            also=("same",),
        ),
        make(
            "cut-characters-differ",
            "cut_character",
            "One form replaces half a character, one drops it.",
            on_reply=text["cut-characters-differ"],
        ),
        make(
            "stream-loses-a-token",
            "same",
            "A full queue drops a piece of the stream.",
            on_reply=text["stream-loses-a-token"],
        ),
        make(
            "stream-miscounts",
            "same_usage",
            "A stream does not count the end token.",
            on_reply=messages(_miscounted),
        ),
        make("n-ignored", "n", "One choice is generated whatever n is.", on_reply=_n_alone),
        make(
            "n-ignored-in-streams",
            "n_stream",
            "A stream has one choice whatever n is.",
            on_reply=all_events(_first_index),
        ),
        make("seed-ignored", "seed", "The seed is ignored.", on_ask=_ignored_seed),
        make("always-greedy", "sampling", "The temperature is ignored.", on_ask=_greedy),
        make(
            "sliding-window",
            "prefix",
            "The last tokens are kept instead of the first.",
            on_reply=text["sliding-window"],
        ),
        make("zero-is-one", "zero", "max_tokens 0 generates a token.", on_ask=_zero_is(1)),
        make("zero-is-unlimited", "zero", "max_tokens 0 means no limit.", on_ask=_zero_is(None)),
        make("zero-crashes", "zero", "max_tokens 0 crashes.", on_reply=_zero_crashes),
        make(
            "foreign-index",
            "announced",
            "A message is about a choice that nobody asked for.",
            on_reply=_foreign_index,
        ),
        make("no-streams", "ordinary", "Streams are broken altogether.", on_reply=_no_streams),
    )
