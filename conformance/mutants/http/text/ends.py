"""Faults of where a text ends: limits, stop strings, characters, and both forms alike."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.shape import Json, finish, messages
from conformance.mutants.http.text.changes import (
    cut_characters_differ,
    half_characters,
    held_at_the_end,
    held_for_ever,
    stop_leaks,
    stream_loses_a_token,
)
from conformance.mutants.http.text.fault import TextFault


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


FAULTS = (
    TextFault(
        "end-is-length",
        "own_end",
        "The model's own end is reported as a limit.",
        on_reply=finish("stop", "length", unless="stop"),
        also=("logprobs",),
    ),
    TextFault(
        "cut-is-stop",
        "cut",
        "A limit is reported as the model's own end.",
        on_reply=finish("length", "stop"),
    ),
    TextFault("one-token-more", "cut", "One token too many is generated.", on_ask=_one_more),
    TextFault("stop-ignored", "stop", "Stop strings are ignored.", on_ask=_no_stop),
    TextFault(
        "stop-by-token",
        "stop",
        "Stop strings are compared with single tokens.",
        on_ask=_stop_by_token,
        also=("stop_stream",),
    ),
    TextFault(
        "stop-ignored-in-streams",
        "stop_stream",
        "Stop strings are ignored in streams.",
        on_ask=_no_stop_in_streams,
    ),
    TextFault(
        "stop-leaks",
        "stop_stream",
        "The beginning of a stop string is sent.",
        change=stop_leaks,
    ),
    TextFault(
        "held-for-ever",
        "released",
        "What is held back is lost at the end.",
        change=held_for_ever,
    ),
    TextFault(
        "held-at-the-limit",
        "released",
        "A stream loses what is held back when the limit ends the answer.",
        change=lambda shape: held_at_the_end(shape, "length"),
    ),
    TextFault(
        "half-characters",
        "characters",
        "Bytes of one character are decoded token by token.",
        change=half_characters,
        also=("same",),
    ),
    TextFault(
        "cut-characters-differ",
        "cut_character",
        "One form replaces half a character, one drops it.",
        change=cut_characters_differ,
    ),
    TextFault(
        "stream-loses-a-token",
        "same",
        "A full queue drops a piece of the stream.",
        change=stream_loses_a_token,
    ),
    TextFault(
        "stream-miscounts",
        "same_usage",
        "A stream does not count the end token.",
        on_reply=messages(_miscounted),
    ),
)
