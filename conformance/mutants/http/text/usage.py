"""Faults of the counts that text APIs report."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import all_events, bodies
from conformance.mutants.http.reply import Event
from conformance.mutants.http.shape import Json, is_finish, messages
from conformance.mutants.http.text.fault import USAGE, TextFault


def _usage_on_last_choice(events: list[Event]) -> list[Event]:
    extra = [e for e in events if isinstance(e.data, dict) and e.data.get("choices") == []]
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


FAULTS = (
    TextFault(
        "usage-on-last-choice",
        "usage_asked",
        "Usage comes beside the last choice.",
        on_reply=all_events(_usage_on_last_choice),
        also=(USAGE,),
    ),
    TextFault(
        "usage-everywhere",
        "usage_asked",
        "Every message carries usage, most of it zero.",
        on_reply=messages(_usage_everywhere),
        also=("same_usage", USAGE),
    ),
    TextFault(
        "usage-unasked",
        "usage_unasked",
        "Usage comes without being asked for.",
        on_ask=_unasked_usage,
        also=(USAGE,),
    ),
    TextFault(
        "usage-for-empty-options",
        "usage_unasked",
        "Any stream_options bring usage.",
        on_ask=_usage_for_any_options,
        also=(USAGE,),
    ),
    TextFault("usage-total", "unary_usage", "The total is too small.", on_reply=bodies(_total)),
    TextFault(
        "no-usage",
        "unary_usage",
        "An answer does not say what it cost.",
        on_reply=bodies(_no_usage),
    ),
)
