"""A failure as text: the clause, what was expected and seen, the call, and how to see it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from google.protobuf.message import Message

from conformance.checks.probe import describe
from conformance.model.case import request_json
from conformance.model.registry import Registry
from conformance.reports.redact import redacted
from conformance.runner.result import Failure
from conformance.runner.store import name_of
from conformance.wire.curl import curl_line
from conformance.wire.dialect import RELEASED, shown_in
from conformance.wire.target import Target
from conformance.wire.transcript import Transcript

# A stream of hundreds of tokens is no timeline that anybody reads.
_SHOWN_AT_EACH_END = 6
# Bytes of a request; each takes up to four characters of the line.
_LONGEST_CURL = 4096


def evidence(
    failure: Failure,
    registry: Registry,
    target: Target,
    routes: Mapping[str, str],
    *,
    payloads: bool = False,
    dialect: str = RELEASED,
) -> Iterator[str]:
    """Lines for a terminal. The request is one the suite made up and is shown whole, so that it
    can be sent again; what the engine answered is shown only with `payloads`. routes: the
    listeners of services that have their own. dialect: whose names enum values get.
    """
    row = registry.requirement(failure.requirement)
    yield f"{row.id}  {row.level.value}  {row.text}"
    yield f"  expected  {failure.expected}"
    yield f"  actual    {failure.actual}"
    if failure.replays:
        yield f"  replayed  {failure.reproduced} of {failure.replays} times"
    if failure.check != failure.requirement:
        yield f"  seen in   a call of the check of {failure.check}"
    transcript = failure.transcript if isinstance(failure.transcript, Transcript) else None
    if transcript is not None:
        yield f"  call      {transcript.method}"
        yield from (
            f"    {line}" for line in timeline(transcript, failure.event, payloads, dialect)
        )
        if transcript.request is not None:
            yield f"  request   {json.dumps(request_json(transcript.request), ensure_ascii=False)}"
    yield f"  replay    oe-conform replay {name_of(failure)} --target {target.address}"
    if transcript is not None:
        yield f"  curl      {_curl(transcript, target, routes)}"


def _curl(transcript: Transcript, target: Target, routes: Mapping[str, str]) -> str:
    size = len(transcript.request_bytes)
    if size > _LONGEST_CURL:
        return f"left out: the request has {size} bytes; use replay"
    return curl_line(
        target,
        transcript.method,
        transcript.request_bytes,
        transcript.metadata,
        routes=routes,
    )


def timeline(
    transcript: Transcript, marked: int | None, payloads: bool, dialect: str = RELEASED
) -> Iterator[str]:
    """One line for each event and for the end of the call; `>` marks the offending event."""
    moments = list(_moments(transcript, marked, payloads, dialect))
    moments += [
        (action.seconds, f"       client: {action.kind.value}") for action in transcript.actions
    ]
    moments.sort(key=lambda moment: moment[0])
    for seconds, text in moments:
        yield f"{seconds:8.3f} s {text}"
    ending = transcript.ending
    details = f": {ending.details}" if ending.details and payloads else ""
    yield f"{ending.seconds:8.3f} s        end: {describe(transcript)}{details}"


def _moments(
    transcript: Transcript, marked: int | None, payloads: bool, dialect: str
) -> Iterator[tuple[float, str]]:
    """The first and last events and the marked one, with a line for each gap between them."""
    last = len(transcript.events) - 1
    left_out = 0
    for index, event in enumerate(transcript.events):
        if min(index, last - index) < _SHOWN_AT_EACH_END or index == marked:
            if left_out:
                yield event.seconds, f"       … {left_out} events left out …"
                left_out = 0
            sign = ">" if index == marked else " "
            yield event.seconds, f"{sign} {index:>3}  {_event(event.message, payloads, dialect)}"
        else:
            left_out += 1


def _event(message: Message, payloads: bool, dialect: str) -> str:
    content = shown_in(dialect, request_json(message))
    return json.dumps(content if payloads else redacted(content), ensure_ascii=False)
