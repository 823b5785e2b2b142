"""Mutants of what the two text APIs share: made for each API, with the ids of its rows."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.chat import DONE
from conformance.mutants.http.mutant import HttpMutant, all_events, bodies, each_event
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.shape import Json, Shape, choices, finish, is_finish, messages
from conformance.mutants.http.text_changes import text_changes

# Seeds of which one gives heads and the other tails.
_TURNS = (1, 4)
# Rows of http-common about what the profile states of a stream.
_TERMINATOR, _USAGE = "OE-HTTP-SSE-006", "OE-HTTP-SSE-007"


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
