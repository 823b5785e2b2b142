"""Mutants of framing: how streams are written and ended."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import HttpMutant, all_events, each_event
from conformance.mutants.http.reply import Event, Reply, sse_bytes


def _stream_as_text(_: Ask, reply: Reply) -> None:
    if reply.events is not None:
        reply.content_type = "text/plain"


def _own_field(_: Ask, reply: Reply) -> None:
    reply.encode = lambda event: b"status: ok\n" + sse_bytes(event)


def _byte_order_mark(_: Ask, reply: Reply) -> None:
    reply.prefix = b"\xef\xbb\xbf"


def _open_end(_: Ask, reply: Reply) -> None:
    reply.suffix = b"data: bye"


def _ping(events: list[Event]) -> list[Event]:
    return [Event("ping"), *events]


def _no_last_chunk(_: Ask, reply: Reply) -> None:
    reply.finish = False


def _not_done(event: Event) -> Event | None:
    return None if event.data == "[DONE]" else event


def _usage(ask: Ask) -> None:
    if ask.stream and ask.json is not None:
        ask.json["stream_options"] = {"include_usage": True}


MUTANTS = (
    HttpMutant(
        "stream-as-text",
        "OE-HTTP-SSE-001",
        "A stream is sent as plain text, and browsers do not parse it.",
        on_reply=_stream_as_text,
    ),
    HttpMutant(
        "own-field",
        "OE-HTTP-SSE-002",
        "Each event has a line that parsers drop.",
        on_reply=_own_field,
    ),
    HttpMutant(
        "byte-order-mark",
        "OE-HTTP-SSE-002",
        "The stream begins with a byte order mark.",
        on_reply=_byte_order_mark,
    ),
    HttpMutant(
        "open-end",
        "OE-HTTP-SSE-003",
        "The last event has no blank line, so clients never see it.",
        on_reply=_open_end,
    ),
    HttpMutant(
        "ping-event",
        "OE-HTTP-SSE-004",
        "A keep-alive is sent as data instead of as a comment.",
        on_reply=all_events(_ping),
    ),
    HttpMutant(
        "no-last-chunk",
        "OE-HTTP-SSE-005",
        "The connection is closed without the last chunk, as after a crash.",
        on_reply=_no_last_chunk,
    ),
    HttpMutant(
        "no-terminator",
        "OE-HTTP-SSE-006",
        "The terminator is written by a layer that streams do not pass any more.",
        on_reply=each_event(_not_done),
        also=frozenset(
            {
                "OE-HTTP-CHAT-007",
                "OE-HTTP-CHAT-035",
                "OE-HTTP-COMP-006",
                "OE-HTTP-COMP-032",
            }
        ),
    ),
    HttpMutant(
        "usage-always",
        "OE-HTTP-SSE-007",
        "A launch option makes usage appear unasked.",
        on_ask=_usage,
        also=frozenset({"OE-HTTP-CHAT-009", "OE-HTTP-COMP-008"}),
    ),
)
