"""One HTTP call in reports: as JSON, as lines on a terminal, and as a curl command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from conformance.http.exchange import Exchange, describe
from conformance.http.json_text import JsonFault
from conformance.http.ndjson import parse_ndjson
from conformance.http.sse import SseEvent, parse_sse
from conformance.model.registry import Registry
from conformance.reports.http_redact import redacted
from conformance.runner.result import Failure
from conformance.runner.store import name_of
from conformance.runtimes.usage import NDJSON, SSE

_DIGITS = 6
_SHOWN_AT_EACH_END = 6
_LONGEST_CURL = 4096
Moment = tuple[float, dict[str, Any]]


def http_call(exchange: Exchange, *, include_payloads: bool) -> dict[str, Any]:
    """The call as the JSON report has it."""
    request = exchange.request.json
    request = request if isinstance(request, dict) else {"bytes": len(exchange.request.body)}
    names = [name for name, _ in exchange.request.headers]
    return {
        "method": exchange.name,
        "request": request if include_payloads else redacted(request),
        "metadata": [*names, *exchange.request.secret_headers],
        "events": [
            {"seconds": round(seconds, _DIGITS), "message": message}
            for seconds, message in moments(exchange, payloads=include_payloads)
        ],
        "actions": []
        if exchange.cancelled is None
        else [{"seconds": round(exchange.cancelled, _DIGITS), "kind": "cancel"}],
        "status": "none" if exchange.status is None else str(exchange.status),
        "origin": "remote" if exchange.whole else "local",
        "seconds": round(exchange.ending.seconds, _DIGITS),
        "details": describe(exchange),
    }


def moments(exchange: Exchange, *, payloads: bool) -> Iterator[Moment]:
    """The messages of the response with the seconds at which each was there."""
    body = exchange.body
    if exchange.media_type == SSE:
        for event in parse_sse(body).events:
            named = {"event": event.name} if event.name else {}
            yield exchange.when(event.end), named | {"data": _data(event, payloads)}
    elif exchange.media_type == NDJSON:
        for line in parse_ndjson(body).lines:
            yield exchange.when(line.end), line.value if payloads else redacted(line.value)
    elif body:
        value = exchange.json
        shown = value if isinstance(value, dict) else {"bytes": len(body)}
        yield exchange.when(len(body)), shown if payloads else redacted(shown)


def http_evidence(
    failure: Failure, registry: Registry, address: str, profile: str, *, payloads: bool = False
) -> Iterator[str]:
    """Lines for a terminal. The request is one that the suite made up and is shown whole; what
    the server answered is shown only with `payloads`. profile: as `--profile` names it.
    """
    row = registry.requirement(failure.requirement)
    yield f"{row.id}  {row.level.value}  {row.text}"
    yield f"  expected  {failure.expected}"
    yield f"  actual    {failure.actual}"
    if failure.replays:
        yield f"  replayed  {failure.reproduced} of {failure.replays} times"
    if failure.check != failure.requirement:
        yield f"  seen in   a call of the check of {failure.check}"
    exchange = failure.transcript
    if isinstance(exchange, Exchange):
        yield f"  call      {exchange.name}"
        yield from (f"    {line}" for line in _timeline(exchange, failure.event, payloads))
        if exchange.request.body:
            yield f"  request   {_printable(exchange.request.body)}"
    replay = f"oe-conform replay {name_of(failure)} --target {address} --profile {profile}"
    yield f"  replay    {replay}"
    if isinstance(exchange, Exchange):
        yield f"  curl      {curl(exchange, address)}"


def curl(exchange: Exchange, address: str) -> str:
    """The call as a command; credentials are left out."""
    request = exchange.request
    if len(request.body) > _LONGEST_CURL:
        return f"left out: the request has {len(request.body)} bytes; use replay"
    try:
        data = request.body.decode("utf-8")
    except UnicodeDecodeError:
        return "left out: the request is no text; use replay"
    words = ["curl", "-sNi", "-X", request.method]
    for name, value in request.headers:
        words += ["-H", f"{name}: {value}"]
    if data:
        words += ["--data-binary", data]
    return shlex.join([*words, address + request.path])


def _timeline(exchange: Exchange, marked: int | None, payloads: bool) -> Iterator[str]:
    """The first and last messages and the marked one, and the end."""
    all_of_them = list(moments(exchange, payloads=payloads))
    last, left_out = len(all_of_them) - 1, 0
    for index, (seconds, message) in enumerate(all_of_them):
        if min(index, last - index) < _SHOWN_AT_EACH_END or index == marked:
            if left_out:
                yield f"{seconds:8.3f} s        … {left_out} messages left out …"
                left_out = 0
            sign = ">" if index == marked else " "
            text = json.dumps(message, ensure_ascii=False)
            yield f"{seconds:8.3f} s {sign} {index:>3}  {text}"
        else:
            left_out += 1
    if exchange.cancelled is not None:
        yield f"{exchange.cancelled:8.3f} s        client: cancel"
    yield f"{exchange.ending.seconds:8.3f} s        end: {describe(exchange)}"


def _data(event: SseEvent, payloads: bool) -> Any:
    text, value = event.data, event.value
    if isinstance(value, JsonFault):
        # Terminators such as [DONE]; anything longer may be output.
        return text if payloads or len(text) <= 8 else f"<{len(text)} characters>"
    return value if payloads else redacted(value)


def _printable(data: bytes) -> str:
    try:
        return data[:_LONGEST_CURL].decode("utf-8")
    except UnicodeDecodeError:
        return repr(data[:_LONGEST_CURL])
