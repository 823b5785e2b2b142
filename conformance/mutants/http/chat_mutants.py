"""Mutants of Chat Completions: one for each of its rules, some with two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.chat import DONE, PATH
from conformance.mutants.http.mutant import (
    Change,
    HttpMutant,
    all_events,
    bodies,
    both,
    each_event,
)
from conformance.mutants.http.reply import Event, Reply

Json = dict[str, Any]
# Seeds of which one gives heads and the other tails.
_TURNS = (1, 4)
_PING_PONG = 20  # tokens of the answers that are compared both ways


def _messages(change: Callable[[Json], None]) -> Change:
    """Change each JSON message of a stream."""

    def one(event: Event) -> Event:
        if isinstance(event.data, dict):
            change(event.data)
        return event

    return each_event(one, PATH)


def _choices(change: Callable[[Json], None]) -> Change:
    """Change each choice of a stream."""

    def one(value: Json) -> None:
        for choice in value["choices"]:
            change(choice)

    return _messages(one)


def _asking(change: Callable[[Json, Ask], None]) -> Callable[[Ask], None]:
    def on_ask(ask: Ask) -> None:
        if ask.json is not None and ask.path == PATH:
            change(ask.json, ask)

    return on_ask


def _finish(old: str, new: str, unless: str = "") -> Change:
    """Another finish_reason, in both forms; not in requests that have the field `unless`."""

    def swap(choice: Json) -> None:
        if choice.get("finish_reason") == old:
            choice["finish_reason"] = new

    def swap_all(body: Json) -> None:
        for choice in body["choices"]:
            swap(choice)

    parts, whole = _choices(swap), bodies(swap_all, PATH)

    def on_reply(ask: Ask, reply: Reply) -> None:
        if not unless or unless not in (ask.json or {}):
            parts(ask, reply)
            whole(ask, reply)

    return on_reply


def _is_finish(event: Event) -> bool:
    return isinstance(event.data, dict) and any(
        choice["finish_reason"] is not None for choice in event.data["choices"]
    )


def _has_text(event: Event) -> bool:
    return isinstance(event.data, dict) and any(
        choice["delta"].get("content") for choice in event.data["choices"]
    )


def _object(value: Json) -> None:
    value["object"] = "text_completion"


def _created(value: Json) -> None:
    value["created"] = "now"


def _new_ids(events: list[Event]) -> list[Event]:
    for number, event in enumerate(events):
        if isinstance(event.data, dict):
            event.data["id"] += f"-{number}"
    return events


def _no_role(choice: Json) -> None:
    choice["delta"].pop("role", None)


def _bot(body: Json) -> None:
    for choice in body["choices"]:
        choice["message"]["role"] = "bot"


def _no_finish_key(choice: Json) -> None:
    if choice["finish_reason"] is None:
        del choice["finish_reason"]


def _empty_finish(choice: Json) -> None:
    if choice["finish_reason"] is None:
        choice["finish_reason"] = ""


def _finish_twice(events: list[Event]) -> list[Event]:
    return [again for event in events for again in ([event] * (2 if _is_finish(event) else 1))]


def _finish_early(events: list[Event]) -> list[Event]:
    """The last text comes after the reason."""
    ends = [number for number, event in enumerate(events) if _is_finish(event)]
    for at in ends:
        if _has_text(events[at - 1]):
            events[at - 1], events[at] = events[at], events[at - 1]
    return events


def _not_done(event: Event) -> Event | None:
    return None if event.data == DONE else event


def _done_twice(events: list[Event]) -> list[Event]:
    return [*events, Event(DONE)]


def _usage_on_last_choice(events: list[Event]) -> list[Event]:
    extra = [e for e in events if isinstance(e.data, dict) and not e.data["choices"]]
    for event in extra:
        events.remove(event)
        last = [each for each in events if _is_finish(each)][-1]
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


def _no_stop(*, stream: bool) -> Callable[[Ask], None]:
    def change(json: Json, ask: Ask) -> None:
        if ask.stream is stream:
            json.pop("stop", None)

    return _asking(change)


def _stop_by_token(json: Json, _: Ask) -> None:
    """Only a stop string that lies within one token is seen."""
    stop = json.get("stop")
    if isinstance(stop, str) and " " in stop.strip():
        del json["stop"]


def _leak(ask: Ask, reply: Reply) -> None:
    """What is held back is sent before the stop string is complete."""
    stop = (ask.json or {}).get("stop")
    if reply.events is None or not isinstance(stop, str) or "\u241e" in stop:
        return
    events = list(reply.events)
    at = next(number for number, event in enumerate(events) if _is_finish(event))
    choice = {**events[at].data["choices"][0], "finish_reason": None, "delta": {"content": stop[0]}}
    events.insert(at, Event({**events[at].data, "choices": [choice]}))
    reply.events = iter(events)


def _held_for_ever(ask: Ask, reply: Reply) -> None:
    stop = (ask.json or {}).get("stop")
    if not isinstance(stop, str) or "\u241e" not in stop:
        return
    begun = stop[:-1]
    if reply.events is not None:
        events = list(reply.events)
        last = [event for event in events if _has_text(event)][-1]
        delta = last.data["choices"][0]["delta"]
        delta["content"] = delta["content"].removesuffix(begun)
        reply.events = iter(events)
    elif reply.status == 200:
        message = reply.body["choices"][0]["message"]
        message["content"] = message["content"].removesuffix(begun)


def _replacement(choice: Json) -> None:
    content = choice["delta"].get("content", "")
    choice["delta"] |= {"content": content.replace("\U0001f600", "\ufffd" * 4)} if content else {}


def _replaced_at_end(ask: Ask, reply: Reply) -> None:
    if reply.events is None and reply.status == 200 and "EMO" in str(ask.json or {}):
        for choice in reply.body.get("choices", ()):
            if choice["finish_reason"] == "length" and not choice["message"]["content"]:
                choice["message"]["content"] = "\ufffd"


def _loses_a_token(events: list[Event]) -> list[Event]:
    texts = [event for event in events if _has_text(event)]
    if len(texts) == _PING_PONG:
        events.remove(texts[15])
    return events


def _miscounted(value: Json) -> None:
    usage = value.get("usage")
    if usage:
        usage["completion_tokens"] -= 1
        usage["total_tokens"] -= 1


def _one_choice(body: Json) -> None:
    del body["choices"][1:]


def _first_index(events: list[Event]) -> list[Event]:
    return [
        event
        for event in events
        if not isinstance(event.data, dict)
        or all(choice["index"] == 0 for choice in event.data["choices"])
    ]


def _logprobs(change: Callable[[list[Json]], list[Json]]) -> Change:
    def one(body: Json) -> None:
        for choice in body["choices"]:
            if choice["logprobs"] is not None:
                choice["logprobs"]["content"] = change(choice["logprobs"]["content"])

    return bodies(one, PATH)


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


def _ignored_seed(json: Json, ask: Ask) -> None:
    """Seeds that give one word and the other in turn: a coin could show the same four times."""
    if "seed" in json:
        ask.state["calls"] = calls = ask.state.get("calls", 0) + 1
        json["seed"] = _TURNS[calls % 2]


def _greedy(json: Json, _: Ask) -> None:
    value = json.get("temperature", 1)
    if isinstance(value, int | float) and 0 < value <= 2:
        json["temperature"] = 0


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


def _sliding(ask: Ask, reply: Reply) -> None:
    """Keeps the last tokens instead of the first."""
    if (ask.json or {}).get("max_tokens") == 9 and reply.status == 200 and reply.events is None:
        message = reply.body["choices"][0]["message"]
        message["content"] = message["content"].replace(" ping", "", 1)


def _zero_is(limit: int | None) -> Callable[[Ask], None]:
    def change(json: Json, _: Ask) -> None:
        if json.get("max_tokens") == 0:
            json["max_tokens"] = limit

    return _asking(change)


def _zero_crashes(ask: Ask, reply: Reply) -> None:
    if (ask.json or {}).get("max_tokens") == 0:
        reply.status = 500


def _foreign_index(ask: Ask, reply: Reply) -> None:
    if reply.events is None or "n" in (ask.json or {}):
        return
    events = list(reply.events)
    first = events[0].data
    choice = {**first["choices"][0], "index": 7, "finish_reason": "stop"}
    reply.events = iter([events[0], Event({**first, "choices": [choice]}), *events[1:]])


def _no_content(body: Json) -> None:
    for choice in body["choices"]:
        if not choice["message"]["content"]:
            del choice["message"]["content"]


def _no_streams(ask: Ask, reply: Reply) -> Reply | None:
    if reply.events is None or ask.path != PATH:
        return None
    error = {"message": "no streams", "type": "server_error", "param": None, "code": None}
    return Reply(500, {"error": error})


_N = "OE-HTTP-CHAT-"
_ENDS = frozenset({f"{_N}011", f"{_N}013", f"{_N}014"})

MUTANTS = (
    HttpMutant(
        "chat-object",
        f"{_N}001",
        "An answer calls itself by the other API's name.",
        on_reply=bodies(_object, PATH),
    ),
    HttpMutant(
        "chat-created",
        f"{_N}001",
        "The time of creation is a text.",
        on_reply=bodies(_created, PATH),
    ),
    HttpMutant(
        "chunk-object",
        f"{_N}002",
        "Chunks call themselves by the other API's name.",
        on_reply=_messages(_object),
    ),
    HttpMutant(
        "chunk-ids",
        f"{_N}002",
        "Each chunk gets an id of its own.",
        on_reply=all_events(_new_ids, PATH),
    ),
    HttpMutant(
        "no-role", f"{_N}003", "A stream never says who speaks.", on_reply=_choices(_no_role)
    ),
    HttpMutant(
        "role-bot",
        f"{_N}003",
        "The answer's role is one that no client knows.",
        on_reply=bodies(_bot, PATH),
    ),
    HttpMutant(
        "no-finish-key",
        f"{_N}004",
        "Chunks before the last leave finish_reason out.",
        on_reply=_choices(_no_finish_key),
    ),
    HttpMutant(
        "empty-finish",
        f"{_N}004",
        "finish_reason is an empty text until the end.",
        on_reply=_choices(_empty_finish),
        also=frozenset(f"{_N}{each}" for each in ("005", "006", "011", "012", "013", "014", "018")),
    ),
    HttpMutant(
        "finish-twice",
        f"{_N}004",
        "The last chunk is sent twice.",
        on_reply=all_events(_finish_twice, PATH),
    ),
    HttpMutant(
        "finish-eos",
        f"{_N}005",
        "The end token's name is the reason.",
        on_reply=_finish("stop", "eos"),
        also=_ENDS,
    ),
    HttpMutant(
        "finish-early",
        f"{_N}006",
        "The reason overtakes the last text.",
        on_reply=all_events(_finish_early, PATH),
    ),
    HttpMutant(
        "no-done",
        f"{_N}007",
        "A stream ends without [DONE].",
        on_reply=each_event(_not_done, PATH),
    ),
    HttpMutant(
        "done-twice",
        f"{_N}007",
        "[DONE] is sent by two layers.",
        on_reply=all_events(_done_twice, PATH),
    ),
    HttpMutant(
        "usage-on-last-choice",
        f"{_N}008",
        "Usage comes beside the last choice.",
        on_reply=all_events(_usage_on_last_choice, PATH),
    ),
    HttpMutant(
        "usage-everywhere",
        f"{_N}008",
        "Every chunk carries usage, most of it zero.",
        on_reply=_messages(_usage_everywhere),
        also=frozenset({f"{_N}019"}),
    ),
    HttpMutant(
        "usage-unasked",
        f"{_N}009",
        "Usage comes without being asked for.",
        on_ask=_asking(_unasked_usage),
    ),
    HttpMutant(
        "usage-for-empty-options",
        f"{_N}009",
        "Any stream_options bring usage.",
        on_ask=_asking(_usage_for_any_options),
    ),
    HttpMutant(
        "usage-total",
        f"{_N}010",
        "The total leaves the answer out.",
        on_reply=bodies(_total, PATH),
    ),
    HttpMutant(
        "no-usage",
        f"{_N}010",
        "An answer does not say what it cost.",
        on_reply=bodies(_no_usage, PATH),
    ),
    HttpMutant(
        "end-is-length",
        f"{_N}011",
        "The model's own end is reported as a limit.",
        on_reply=both(_finish("stop", "length", unless="max_tokens"), lambda _, reply: reply),
    ),
    HttpMutant(
        "cut-is-stop",
        f"{_N}012",
        "A limit is reported as the model's own end.",
        on_reply=_finish("length", "stop"),
    ),
    HttpMutant(
        "one-token-more",
        f"{_N}012",
        "One token more than allowed is generated.",
        on_ask=_asking(_one_more),
    ),
    HttpMutant(
        "stop-ignored",
        f"{_N}013",
        "Stop strings are ignored without a stream.",
        on_ask=_no_stop(stream=False),
    ),
    HttpMutant(
        "stop-by-token",
        f"{_N}013",
        "Stop strings are compared with single tokens.",
        on_ask=_asking(_stop_by_token),
        also=frozenset({f"{_N}014"}),
    ),
    HttpMutant(
        "stop-ignored-in-streams",
        f"{_N}014",
        "Stop strings are ignored in streams.",
        on_ask=_no_stop(stream=True),
    ),
    HttpMutant("stop-leaks", f"{_N}014", "The beginning of a stop string is sent.", on_reply=_leak),
    HttpMutant(
        "held-for-ever",
        f"{_N}015",
        "What is held back is lost at the end.",
        on_reply=_held_for_ever,
    ),
    HttpMutant(
        "half-characters",
        f"{_N}016",
        "Bytes of one character are decoded token by token.",
        on_reply=_choices(_replacement),
        also=frozenset({f"{_N}018"}),
    ),
    HttpMutant(
        "cut-characters-differ",
        f"{_N}017",
        "One form replaces half a character, one drops it.",
        on_reply=_replaced_at_end,
    ),
    HttpMutant(
        "stream-loses-a-token",
        f"{_N}018",
        "A full queue drops a piece of the stream.",
        on_reply=all_events(_loses_a_token, PATH),
    ),
    HttpMutant(
        "stream-miscounts",
        f"{_N}019",
        "A stream does not count the end token.",
        on_reply=_messages(_miscounted),
    ),
    HttpMutant(
        "n-ignored",
        f"{_N}020",
        "One choice is generated whatever n is.",
        on_reply=bodies(_one_choice, PATH),
    ),
    HttpMutant(
        "n-ignored-in-streams",
        f"{_N}021",
        "A stream has one choice whatever n is.",
        on_reply=all_events(_first_index, PATH),
    ),
    HttpMutant(
        "logprobs-merged",
        f"{_N}022",
        "A character of several tokens gets one entry.",
        on_reply=_logprobs(_merged),
    ),
    HttpMutant(
        "logprobs-cumulative",
        f"{_N}023",
        "Each entry repeats the text so far.",
        on_reply=_logprobs(_cumulative),
    ),
    HttpMutant(
        "logprobs-unsorted",
        f"{_N}024",
        "Alternatives come in the order of their ids.",
        on_reply=_logprobs(_unsorted),
    ),
    HttpMutant(
        "logprobs-too-many",
        f"{_N}024",
        "One alternative more than asked for.",
        on_reply=_logprobs(_too_many),
    ),
    HttpMutant(
        "logprobs-unasked",
        f"{_N}025",
        "Log probabilities come without being asked for.",
        on_ask=_asking(_unasked_logprobs),
    ),
    HttpMutant("seed-ignored", f"{_N}026", "The seed is ignored.", on_ask=_asking(_ignored_seed)),
    HttpMutant("always-greedy", f"{_N}027", "The temperature is ignored.", on_ask=_asking(_greedy)),
    HttpMutant(
        "schema-ignored",
        f"{_N}028",
        "The response format is ignored.",
        on_ask=_asking(_ignored_schema),
    ),
    HttpMutant(
        "bad-schema-ignored",
        f"{_N}029",
        "A schema that cannot be used is ignored.",
        on_ask=_asking(_bad_schema_ignored),
    ),
    HttpMutant(
        "sliding-window",
        f"{_N}030",
        "The last tokens are kept instead of the first.",
        on_reply=_sliding,
    ),
    HttpMutant("zero-is-one", f"{_N}031", "max_tokens 0 generates a token.", on_ask=_zero_is(1)),
    HttpMutant(
        "zero-is-unlimited", f"{_N}031", "max_tokens 0 means no limit.", on_ask=_zero_is(None)
    ),
    HttpMutant("zero-crashes", f"{_N}031", "max_tokens 0 crashes.", on_reply=_zero_crashes),
    HttpMutant(
        "foreign-index",
        f"{_N}032",
        "A message is about a choice that nobody asked for.",
        on_reply=_foreign_index,
    ),
    HttpMutant(
        "no-content-key",
        f"{_N}033",
        "An empty answer has no content at all.",
        on_reply=bodies(_no_content, PATH),
    ),
    HttpMutant("no-streams", f"{_N}034", "Streams are broken altogether.", on_reply=_no_streams),
)
