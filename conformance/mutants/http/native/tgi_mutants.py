"""Mutants of Text Generation Inference's native routes: one at least for each of their rules."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import HttpMutant, all_events, bodies
from conformance.mutants.http.native import tgi
from conformance.mutants.http.native.changes import (
    Json,
    everywhere,
    failing,
    limit_off,
    swallowed,
    values,
    wedged_by_leavers,
)
from conformance.mutants.http.reply import Event, Reply

# Of a prompt that is too long.
_KEPT_WORDS = 512


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


def _no_type(value: Json) -> None:
    value.pop("error_type", None)


def _cut(ask: Ask) -> None:
    inputs = (ask.json or {}).get("inputs")
    if ask.json is not None and isinstance(inputs, str):
        ask.json["inputs"] = " ".join(inputs.split()[-_KEPT_WORDS:])


MUTANTS = (
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
        on_reply=values(_no_logprob, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-text-in-each",
        "OE-HTTP-TGI-003",
        "Every message carries generated_text.",
        on_reply=values(_text_so_far, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-done-marker",
        "OE-HTTP-TGI-003",
        "The terminator of another API ends the stream.",
        on_reply=all_events(_done_marker, tgi.STREAM),
        also=frozenset({"OE-HTTP-TGI-010"}),
    ),
    HttpMutant(
        "tgi-stop-reason",
        "OE-HTTP-TGI-004",
        "A reason of another API.",
        on_reply=everywhere(_details("eos_token", "stop"), tgi.WHOLE, tgi.STREAM),
        also=frozenset({"OE-HTTP-TGI-007"}),
    ),
    HttpMutant(
        "tgi-special-hidden",
        "OE-HTTP-TGI-005",
        "The end token is sent as ordinary text.",
        on_reply=values(_with_special, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-limit-off",
        "OE-HTTP-TGI-006",
        "The limit lets three more tokens through.",
        on_ask=limit_off("max_new_tokens", "parameters"),
        also=frozenset({"OE-HTTP-TGI-009"}),
    ),
    HttpMutant(
        "tgi-natural-length",
        "OE-HTTP-TGI-007",
        "A natural end is reported as a cut.",
        on_reply=everywhere(_details("eos_token", "length"), tgi.WHOLE, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-other-stream",
        "OE-HTTP-TGI-008",
        "A stream says something else than the same answer in one piece.",
        on_reply=values(_shouting, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-bad-request",
        "OE-HTTP-TGI-009",
        "What fails validation is answered with 400.",
        on_reply=_bad_request,
        also=frozenset({"OE-HTTP-TGI-012"}),
    ),
    HttpMutant(
        "tgi-error-swallowed",
        "OE-HTTP-TGI-010",
        "The generation fails, and the stream just ends.",
        on_reply=failing(swallowed, tgi.STREAM),
        also=frozenset({"OE-HTTP-TGI-003"}),
    ),
    HttpMutant(
        "tgi-error-untyped",
        "OE-HTTP-TGI-010",
        "An error inside a stream has no type.",
        on_reply=values(_no_type, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-done-after-error",
        "OE-HTTP-TGI-010",
        "The terminator of another API follows an error.",
        on_reply=failing(_done_marker, tgi.STREAM),
    ),
    HttpMutant(
        "tgi-wedged-by-leavers",
        "OE-HTTP-TGI-011",
        "A generation that nobody reads goes on, and everybody waits for it.",
        on_reply=wedged_by_leavers(tgi.STREAM),
    ),
    HttpMutant(
        "tgi-prompt-cut",
        "OE-HTTP-TGI-012",
        "A prompt that does not fit is cut in silence.",
        on_ask=_cut,
    ),
)
