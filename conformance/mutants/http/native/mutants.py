"""Mutants of the native routes: one for each of their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import (
    Change,
    HttpMutant,
    all_events,
    bodies,
    each_event,
)
from conformance.mutants.http.native import lmstudio, ollama, tgi
from conformance.mutants.http.reply import Event, Reply, ndjson_bytes

Json = dict[str, Any]


def _values(change: Callable[[Json], None], path: str = "") -> Change:
    """Change the value of each message."""

    def one(event: Event) -> Event:
        change(event.data)
        return event

    return each_event(one, path)


def _everywhere(change: Callable[[Json], None], *paths: str) -> Change:
    """Change each value of streams and the bodies of answers in one piece."""
    found: list[Change] = [_values(change, path) for path in paths or ("",)]
    found += [bodies(change, path) for path in paths or ("",)]

    def on_reply(ask: Ask, reply: Reply) -> None:
        for each in found:
            each(ask, reply)

    return on_reply


def _native(ask: Ask) -> bool:
    return ask.path in {ollama.CHAT, ollama.GENERATE}


def _whole_by_default(ask: Ask) -> None:
    if ask.json is not None and _native(ask):
        ask.json.setdefault("stream", False)


def _joined_lines(ask: Ask, reply: Reply) -> None:
    if _native(ask):
        reply.encode = lambda event: ndjson_bytes(event).rstrip() + b" "


def _done_early(value: Json) -> None:
    if "done" in value:
        value["done"] = True
        value.setdefault("done_reason", "stop")
        value.setdefault("eval_count", 1)


def _no_time(value: Json) -> None:
    if "message" in value or "response" in value:
        value["created_at"] = "now"


def _set_reason(old: str, new: str) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        if value.get("done_reason") == old:
            value["done_reason"] = new

    return change


def _seconds(value: Json) -> None:
    if "total_duration" in value:
        value["total_duration"] = 0.004


def _still_going(value: Json) -> None:
    if value.get("done") is True:
        value["done"] = False


def _other_end(value: Json) -> None:
    """Streams end for another reason than answers in one piece."""
    if value.get("done_reason") == "stop":
        value["done_reason"] = "length"


def _no_limit(name: str, holder: str) -> Callable[[Ask], None]:
    """The limit is off by three."""

    def on_ask(ask: Ask) -> None:
        found = (ask.json or {}).get(holder) if holder else ask.json
        if isinstance(found, dict) and name in found:
            found[name] += 3

    return on_ask


def _no_stops(ask: Ask) -> None:
    if ask.json is not None and _native(ask):
        (ask.json.get("options") or {}).pop("stop", None)


def _broken_character(value: Json) -> None:
    for holder in (value, value.get("message")):
        for name in ("response", "content"):
            if isinstance(holder, dict) and isinstance(holder.get(name), str):
                holder[name] = holder[name].replace("\U0001f600", "\ufffd\ufffd")


def _no_last_chunk(ask: Ask, reply: Reply) -> None:
    if _native(ask):
        reply.finish = False


def _nested_error(_: Ask, reply: Reply) -> None:
    if reply.status in {400, 404} and isinstance(reply.body, dict):
        reply.body = {"error": {"message": "no"}}


def _no_text(value: Json) -> None:
    if "token" not in value and "generated_text" in value:
        value["text"] = value.pop("generated_text")


def _no_logprob(value: Json) -> None:
    if "token" in value:
        del value["token"]["logprob"]


def _text_so_far(value: Json) -> None:
    if "token" in value and value["generated_text"] is None:
        value["generated_text"] = value["token"]["text"]


def _done_marker(events: list[Event]) -> list[Event]:
    return [*events, Event("[DONE]")]


def _details(old: str, new: str) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        details = value.get("details")
        if isinstance(details, dict) and details["finish_reason"] == old:
            details["finish_reason"] = new

    return change


def _with_special(value: Json) -> None:
    if "token" in value and value["token"]["special"]:
        value["token"]["special"] = False


def _shouting(value: Json) -> None:
    """Token texts and the whole text alike, so that only the other form tells."""
    if "token" in value:
        value["token"]["text"] = value["token"]["text"].upper()
        if value["generated_text"] is not None:
            value["generated_text"] = value["generated_text"].upper()


def _bad_request(_: Ask, reply: Reply) -> None:
    if reply.status == 422:
        reply.status = 400


def _no_instance(body: Json) -> None:
    body.pop("model_instance_id", None)


def _negative(value: Json) -> None:
    for holder in (value, value.get("result")):
        if isinstance(holder, dict) and "stats" in holder:
            holder["stats"]["input_tokens"] = -1


def _no_names(event: Event) -> Event:
    event.name = ""
    return event


def _no_end(event: Event) -> Event | None:
    return None if event.name == "prompt_processing.end" else event


def _end_twice(events: list[Event]) -> list[Event]:
    return [*events, events[-1]]


def _empty_result(value: Json) -> None:
    if value.get("type") == "chat.end":
        value["result"]["output"] = []


def _trimmed(value: Json) -> None:
    """Deltas and result alike."""
    if value.get("type") == "message.delta":
        value["content"] = value["content"].replace(" ", "")
    if value.get("type") == "chat.end":
        for item in value["result"]["output"]:
            item["content"] = item["content"].replace(" ", "")


OLLAMA = (
    HttpMutant(
        "ollama-whole-by-default",
        "OE-HTTP-OLLAMA-001",
        "Without the field stream the answer comes in one piece.",
        on_ask=_whole_by_default,
    ),
    HttpMutant(
        "ollama-joined-lines",
        "OE-HTTP-OLLAMA-002",
        "Objects follow each other without a line feed.",
        on_reply=_joined_lines,
    ),
    HttpMutant(
        "ollama-done-early",
        "OE-HTTP-OLLAMA-003",
        "Every line says done.",
        on_reply=_values(_done_early),
    ),
    HttpMutant(
        "ollama-no-time",
        "OE-HTTP-OLLAMA-004",
        "created_at is no time.",
        on_reply=_values(_no_time),
    ),
    HttpMutant(
        "ollama-eos-reason",
        "OE-HTTP-OLLAMA-005",
        "The reason at the end of a text is one of another API.",
        on_reply=_everywhere(_set_reason("stop", "eos")),
        also=frozenset({"OE-HTTP-OLLAMA-010"}),
    ),
    HttpMutant(
        "ollama-seconds",
        "OE-HTTP-OLLAMA-006",
        "Durations are seconds instead of nanoseconds.",
        on_reply=_everywhere(_seconds),
    ),
    HttpMutant(
        "ollama-never-done",
        "OE-HTTP-OLLAMA-007",
        "An answer in one piece says that it goes on.",
        on_reply=bodies(_still_going),
    ),
    HttpMutant(
        "ollama-stream-reason",
        "OE-HTTP-OLLAMA-008",
        "A stream ends for another reason than the same answer in one piece.",
        on_reply=_values(_other_end),
        also=frozenset({"OE-HTTP-OLLAMA-010"}),
    ),
    HttpMutant(
        "ollama-limit-off",
        "OE-HTTP-OLLAMA-009",
        "The limit lets three more tokens through.",
        on_ask=_no_limit("num_predict", "options"),
    ),
    HttpMutant(
        "ollama-natural-length",
        "OE-HTTP-OLLAMA-010",
        "A natural end is reported as a cut.",
        on_reply=_everywhere(_set_reason("stop", "length")),
    ),
    HttpMutant(
        "ollama-no-stops",
        "OE-HTTP-OLLAMA-011",
        "Stop strings are ignored.",
        on_ask=_no_stops,
    ),
    HttpMutant(
        "ollama-half-characters",
        "OE-HTTP-OLLAMA-012",
        "Each token is decoded on its own.",
        on_reply=_everywhere(_broken_character, ollama.CHAT, ollama.GENERATE),
    ),
    HttpMutant(
        "ollama-nested-error",
        "OE-HTTP-OLLAMA-013",
        "Errors have the envelope of another API.",
        on_reply=_nested_error,
    ),
    HttpMutant(
        "ollama-no-last-chunk",
        "OE-HTTP-OLLAMA-014",
        "The connection is closed without the last chunk, as after a crash.",
        on_reply=_no_last_chunk,
    ),
)

TGI = (
    HttpMutant(
        "tgi-other-name",
        "OE-HTTP-TGI-001",
        "The text stands under another name.",
        on_reply=bodies(_no_text, tgi.WHOLE),
    ),
    HttpMutant(
        "tgi-no-logprob",
        "OE-HTTP-TGI-002",
        "Tokens come without their log probability.",
        on_reply=_values(_no_logprob, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-text-in-each",
        "OE-HTTP-TGI-003",
        "Every message carries generated_text.",
        on_reply=_values(_text_so_far, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-done-marker",
        "OE-HTTP-TGI-003",
        "The terminator of another API ends the stream.",
        on_reply=all_events(_done_marker, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-stop-reason",
        "OE-HTTP-TGI-004",
        "A reason of another API.",
        on_reply=_everywhere(_details("eos_token", "stop"), tgi.WHOLE, tgi.STREAM),
        also=frozenset({"OE-HTTP-TGI-007"}),
    ),
    HttpMutant(
        "tgi-special-hidden",
        "OE-HTTP-TGI-005",
        "The end token is sent as ordinary text.",
        on_reply=_values(_with_special, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-limit-off",
        "OE-HTTP-TGI-006",
        "The limit lets three more tokens through.",
        on_ask=_no_limit("max_new_tokens", "parameters"),
        also=frozenset({"OE-HTTP-TGI-009"}),
    ),
    HttpMutant(
        "tgi-natural-length",
        "OE-HTTP-TGI-007",
        "A natural end is reported as a cut.",
        on_reply=_everywhere(_details("eos_token", "length"), tgi.WHOLE, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-other-stream",
        "OE-HTTP-TGI-008",
        "A stream says something else than the same answer in one piece.",
        on_reply=_values(_shouting, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-bad-request",
        "OE-HTTP-TGI-009",
        "What fails validation is answered with 400.",
        on_reply=_bad_request,
    ),
)

LM_STUDIO = (
    HttpMutant(
        "lmstudio-no-instance",
        "OE-HTTP-LMS-001",
        "An answer does not say which instance gave it.",
        on_reply=bodies(_no_instance, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-negative-count",
        "OE-HTTP-LMS-002",
        "A count that is not known is -1.",
        on_reply=_everywhere(_negative, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-no-names",
        "OE-HTTP-LMS-003",
        "Events have no names.",
        on_reply=each_event(_no_names, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-end-twice",
        "OE-HTTP-LMS-004",
        "chat.end comes twice.",
        on_reply=all_events(_end_twice, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-open-phase",
        "OE-HTTP-LMS-005",
        "A phase is not ended before the message begins.",
        on_reply=each_event(_no_end, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-empty-result",
        "OE-HTTP-LMS-006",
        "The result of chat.end has none of what was said.",
        on_reply=_values(_empty_result, lmstudio.PATH),
        also=frozenset({"OE-HTTP-LMS-008"}),
    ),
    HttpMutant(
        "lmstudio-limit-off",
        "OE-HTTP-LMS-007",
        "The limit lets three more tokens through.",
        on_ask=_no_limit("max_output_tokens", ""),
    ),
    HttpMutant(
        "lmstudio-other-stream",
        "OE-HTTP-LMS-008",
        "A stream says something else than the same answer in one piece.",
        on_reply=_values(_trimmed, lmstudio.PATH),
    ),
)

NATIVE_MUTANTS: tuple[HttpMutant, ...] = OLLAMA + TGI + LM_STUDIO
