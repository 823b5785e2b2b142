"""What can go wrong with a call, as a closed list: a server's own words are never copied."""

from __future__ import annotations

from enum import StrEnum

from conformance.http.exchange import End, Exchange


class Category(StrEnum):
    """Why a call is no complete one."""

    POLICY_REFUSED = "policy_refused"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_HEADERS = "timeout_headers"
    TIMEOUT_IDLE = "timeout_idle"
    TIMEOUT_TOTAL = "timeout_total"
    HTTP_4XX = "http_4xx"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"
    REDIRECT_REFUSED = "redirect_refused"
    BODY_LIMIT = "body_limit"
    HEADER_LIMIT = "header_limit"
    FRAME_LIMIT = "frame_limit"
    PROTOCOL_FRAMING = "protocol_framing"
    PROTOCOL_JSON = "protocol_json"
    PROTOCOL_SCHEMA = "protocol_schema"
    STREAM_ERROR_EVENT = "stream_error_event"
    TRUNCATED = "truncated"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # the collector died between lease and outcome


# Nothing of the request had reached a connected socket.
BEFORE_DISPATCH = frozenset(
    {Category.POLICY_REFUSED, Category.DNS, Category.CONNECT, Category.TLS}
    | {Category.TIMEOUT_CONNECT}
)

_OF_END = {
    End.TRUNCATED: Category.TRUNCATED,
    End.NO_RESPONSE: Category.TRUNCATED,
    End.MALFORMED: Category.PROTOCOL_FRAMING,
    End.CANCELLED: Category.CANCELLED,
    End.CONNECT: Category.CONNECT,
    End.TIMEOUT_HEADERS: Category.TIMEOUT_HEADERS,
    End.TIMEOUT_IDLE: Category.TIMEOUT_IDLE,
    End.TIMEOUT_TOTAL: Category.TIMEOUT_TOTAL,
    End.LIMIT_HEADERS: Category.HEADER_LIMIT,
    End.LIMIT_BODY: Category.BODY_LIMIT,
    End.LIMIT_CHUNKS: Category.FRAME_LIMIT,
}


def category_of(exchange: Exchange) -> Category | None:
    """What HTTP itself says went wrong; None for a whole 2xx response."""
    if not exchange.whole:
        return _OF_END.get(exchange.ending.kind, Category.PROTOCOL_FRAMING)
    status = exchange.status or 0
    if 200 <= status < 300:
        return None
    if status == 429:
        return Category.HTTP_429
    if status >= 500:
        return Category.HTTP_5XX
    if status >= 400:
        return Category.HTTP_4XX
    return Category.REDIRECT_REFUSED if status >= 300 else Category.PROTOCOL_FRAMING
