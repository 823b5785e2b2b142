"""Faults of choices and sampling, and of limits of zero."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import all_events, bodies
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.shape import Json, choices_in
from conformance.mutants.http.text.changes import sliding_window
from conformance.mutants.http.text.fault import TextFault

# Seeds of which one gives heads and the other tails.
_TURNS = (1, 4)


def _one_choice(body: Json) -> None:
    del body["choices"][1:]


def _n_alone(ask: Ask, reply: Reply) -> None:
    if "n" in (ask.json or {}):
        bodies(_one_choice)(ask, reply)


def _first_index(events: list[Event]) -> list[Event]:
    return [event for event in events if all(choice["index"] == 0 for choice in choices_in(event))]


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


FAULTS = (
    TextFault("n-ignored", "n", "One choice is generated whatever n is.", on_reply=_n_alone),
    TextFault(
        "n-ignored-in-streams",
        "n_stream",
        "A stream has one choice whatever n is.",
        on_reply=all_events(_first_index),
    ),
    TextFault("seed-ignored", "seed", "The seed is ignored.", on_ask=_ignored_seed),
    TextFault("always-greedy", "sampling", "The temperature is ignored.", on_ask=_greedy),
    TextFault(
        "sliding-window",
        "prefix",
        "The last tokens are kept instead of the first.",
        change=sliding_window,
    ),
    TextFault("zero-is-one", "zero", "max_tokens 0 generates a token.", on_ask=_zero_is(1)),
    TextFault("zero-is-unlimited", "zero", "max_tokens 0 means no limit.", on_ask=_zero_is(None)),
    TextFault("zero-crashes", "zero", "max_tokens 0 crashes.", on_reply=_zero_crashes),
    TextFault(
        "foreign-index",
        "announced",
        "A message is about a choice that nobody asked for.",
        on_reply=_foreign_index,
    ),
    TextFault("no-streams", "ordinary", "Streams are broken altogether.", on_reply=_no_streams),
)
