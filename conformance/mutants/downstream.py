"""An engine that fetches images by URL, played by the proxy: the right one, and its faults."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from conformance.mutants.behaviours import edited
from conformance.mutants.methods import BOTH_MODEL_INFOS, GENERATE, each
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant
from conformance.oracle.trace import PARENT, STATE, Parent, parent_kind, values
from conformance.wire.transcript import Metadata

OWN_SPAN = "b7ad6b7169203331"
SECONDS = 5.0
Headers = Callable[[Metadata], Mapping[str, str]]


def _fetching(headers: Headers) -> dict[str, Behaviour]:
    """The model takes images; `headers` makes those of the fetch from the call's metadata."""

    async def behaviour(exchange: Exchange) -> Answers:
        for item in exchange.request.media:
            if item.url:
                asked = urllib.request.Request(item.url, headers=dict(headers(exchange.metadata)))  # noqa: S310 - of the suite's own server
                await asyncio.to_thread(_fetch, asked)
                exchange.request.ClearField("media")
                break
        async for response in exchange.upstream():
            yield response

    return {**each(BOTH_MODEL_INFOS, edited(_takes_images)), GENERATE: behaviour}


def _takes_images(info: Any) -> None:
    info.supports_multimodal = True


def _fetch(asked: urllib.request.Request) -> None:
    with urllib.request.urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310 - as above
        answer.read()


def _onward(metadata: Metadata) -> dict[str, str]:
    """What a right engine sends on."""
    parents = values(metadata, PARENT)
    if len(parents) != 1 or parent_kind(parents[0]) is Parent.INVALID:
        return {}
    _, trace, _, flags = parents[0].split("-")[:4]
    state = ",".join(values(metadata, STATE))
    return {PARENT: f"00-{trace}-{OWN_SPAN}-{flags}"} | ({STATE: state} if state else {})


def _nothing(_: Metadata) -> dict[str, str]:
    return {}


def _same_span(metadata: Metadata) -> dict[str, str]:
    parents = values(metadata, PARENT)
    return {PARENT: parents[0]} if parents else {}


def _state_always(metadata: Metadata) -> dict[str, str]:
    state = ",".join(values(metadata, STATE))
    return _onward(metadata) | ({STATE: state} if state else {})


def _own_members(metadata: Metadata) -> dict[str, str]:
    """Only the members of known vendors pass."""
    onward = _onward(metadata)
    members = onward.get(STATE, "").split(",")
    return onward | ({STATE: members[0]} if members[0] else {})


RIGHT = Mutant(
    "fetches-with-trace",
    "OE-CORE-TRACE-006",
    "Images are fetched under the trace of the request.",
    _fetching(_onward),
)

MUTANTS = (
    Mutant(
        "fetch-without-trace",
        "OE-CORE-TRACE-006",
        "The client that fetches images knows nothing of the request's trace.",
        _fetching(_nothing),
    ),
    Mutant(
        "fetch-with-callers-span",
        "OE-CORE-TRACE-006",
        "Headers are copied to the fetch as they came, the caller's span included.",
        _fetching(_same_span),
    ),
    Mutant(
        "tracestate-alone-passed-on",
        "OE-CORE-TRACE-007",
        "A tracestate is passed on whatever the traceparent is.",
        _fetching(_state_always),
    ),
    Mutant(
        "tracestate-filtered",
        "OE-CORE-TRACE-007",
        "Members of tracestate that are not known are dropped.",
        _fetching(_own_members),
    ),
)
