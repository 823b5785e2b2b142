"""Mutants of how faults of the client are answered."""

from __future__ import annotations

from typing import Any

from conformance.mutants.http.ask import CONTEXT_TOKENS, MODEL, Ask
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.reply import Reply

_MESSAGES = [{"role": "user", "content": "Please RUN"}]
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "max_tokens": (0, 2**31)}


def _crash(ask: Ask, _: Reply) -> Reply | None:
    return Reply(silent=True) if isinstance((ask.json or {}).get("temperature"), str) else None


def _refused(change: Any) -> Any:
    def on_reply(_: Ask, reply: Reply) -> Reply | None:
        return change(reply) if reply.status >= 400 and isinstance(reply.body, dict) else None

    return on_reply


def _string(reply: Reply) -> Reply:
    return Reply(reply.status, {"error": "bad request"})


def _int_code(reply: Reply) -> Reply:
    return Reply(reply.status, {"error": {**reply.body["error"], "code": reply.status}})


def _json_crash(ask: Ask, reply: Reply) -> None:
    if ask.method == "POST" and ask.json is None:
        reply.status = 500


def _type_crash(ask: Ask, reply: Reply) -> None:
    wrong = isinstance((ask.json or {}).get("max_tokens"), str)
    if wrong and reply.status == 400:
        reply.status = 500


def _clamped(ask: Ask) -> None:
    for name, (least, most) in _RANGES.items():
        value = (ask.json or {}).get(name)
        if ask.json and isinstance(value, int | float) and not least <= value <= most:
            del ask.json[name]


def _any_model(ask: Ask) -> None:
    if ask.json is not None and isinstance(ask.json.get("model"), str):
        ask.json["model"] = MODEL


def _default_prompt(ask: Ask) -> None:
    if ask.json is not None and "messages" not in ask.json:
        ask.json["messages"] = _MESSAGES


def _empty_prompt(ask: Ask) -> None:
    if ask.json is not None and ask.json.get("messages") == []:
        ask.json["messages"] = _MESSAGES


def _get_answers(ask: Ask, _: Reply) -> Reply | None:
    return Reply(body={}) if ask.method != "POST" and "completions" in ask.path else None


def _echo(ask: Ask, reply: Reply) -> None:
    if reply.status >= 400 and isinstance(reply.body, dict):
        reply.body["error"]["message"] += f": {ask.body!r}"


def _wedged(ask: Ask, _: Reply) -> Reply | None:
    if isinstance((ask.json or {}).get("stop"), int):
        ask.state["dead"] = True
    return Reply(stall=True) if ask.method == "POST" and ask.state.get("dead") else None


def _truncating(ask: Ask) -> None:
    messages = (ask.json or {}).get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("content"), str):
            message["content"] = " ".join(message["content"].split()[-CONTEXT_TOKENS // 2 :])


MUTANTS = (
    HttpMutant(
        "closes-on-bad-value",
        "OE-HTTP-ERR-001",
        "An exception in the handler closes the connection without any answer.",
        on_reply=_crash,
    ),
    HttpMutant(
        "error-string",
        "OE-HTTP-ERR-002",
        "Errors are a text where clients look for an object.",
        on_reply=_refused(_string),
    ),
    HttpMutant(
        "error-int-code",
        "OE-HTTP-ERR-002",
        "The code of an error is its status, a number.",
        on_reply=_refused(_int_code),
    ),
    HttpMutant(
        "bad-json-500",
        "OE-HTTP-ERR-003",
        "A parser's exception becomes a server error.",
        on_reply=_json_crash,
    ),
    HttpMutant(
        "bad-type-500",
        "OE-HTTP-ERR-004",
        "A conversion's exception becomes a server error.",
        on_reply=_type_crash,
    ),
    HttpMutant(
        "out-of-range-ignored",
        "OE-HTTP-ERR-005",
        "Numbers out of range are dropped in silence.",
        on_ask=_clamped,
    ),
    HttpMutant(
        "any-model",
        "OE-HTTP-ERR-006",
        "Whatever model is asked for, the one that is loaded answers.",
        on_ask=_any_model,
    ),
    HttpMutant(
        "missing-prompt-answered",
        "OE-HTTP-ERR-007",
        "A request without a prompt is answered with something.",
        on_ask=_default_prompt,
    ),
    HttpMutant(
        "empty-prompt-answered",
        "OE-HTTP-ERR-008",
        "A conversation without messages is answered with something.",
        on_ask=_empty_prompt,
    ),
    HttpMutant(
        "get-answers",
        "OE-HTTP-ERR-009",
        "A GET on an inference route is answered with 200.",
        on_reply=_get_answers,
    ),
    HttpMutant(
        "error-echo",
        "OE-HTTP-ERR-010",
        "An error repeats the whole request.",
        on_reply=_echo,
    ),
    HttpMutant(
        "wedged-by-bad-stop",
        "OE-HTTP-ERR-011",
        "A bad stop value kills the thread that generates, and everything after it hangs.",
        on_reply=_wedged,
    ),
    HttpMutant(
        "prompt-truncated",
        "OE-HTTP-ERR-012",
        "A prompt that does not fit is cut in silence.",
        on_ask=_truncating,
    ),
)
