"""Trace context in the calls that an engine makes for a request (TRACE-006 and 007).

They show where the engine fetches a MediaItem.url from this machine. One that refuses URLs, or
that runs elsewhere and cannot reach this machine, is not judged.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.oracle.trace import PARENT, STATE, Parent, parent_kind, values
from conformance.strategies import simple_request
from conformance.strategies.trace import INVALID, TRACE, VALID, VALID_STATE
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from conformance.wire.web import Fetch, web
from oe_wire import v1

# Large enough for the patches of common vision models.
IMAGE_SIDE = 32


def png(side: int) -> bytes:
    """A black square as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\x00" + b"\x00\x00\x00" * side) * side)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def _with(*metadata: Metadata) -> Iterable[Case]:
    return [Case(metadata=pairs) for pairs in metadata]


def _fetched(probe: Probe, case: Case) -> Fetch:
    """What the engine asks of this machine for a request with an image; skips when nothing."""
    declared: Declared = probe.declared
    request = simple_request(declared, prompt="What is this?")
    request.request_id = probe.fresh_id()
    with web(png(IMAGE_SIDE), "image/png") as server:
        path = f"/{request.request_id}.png"
        request.media.add(
            modality=v1.MODALITY_IMAGE, url=server.url + path[1:], mime_type="image/png"
        )
        call = probe.generate(Case(request, case.metadata))
        fetch = server.wait_fetch(path, 0.0)
    if fetch is None:
        probe.skip(f"the engine fetched nothing from this machine: {describe(call)}")
    return fetch


@check(
    "OE-CORE-TRACE-006",
    table=lambda _: _with(((PARENT, VALID), (STATE, VALID_STATE))),
    advice="Send traceparent with the trace-id that came in, and a parent-id of your own, in each "
    "call that a request causes.",
)
def passed_on(probe: Probe, case: Case) -> None:
    """A call for the request carries its trace-id with another parent-id."""
    found = _fetched(probe, case).values(PARENT)
    if len(found) != 1 or parent_kind(found[0]) is Parent.INVALID:
        probe.fail("one valid traceparent on the call", f"{len(found)} of them: {list(found)}")
    _, trace, span, _ = found[0].split("-", 3)
    if trace != TRACE:
        probe.fail(f"the trace-id {TRACE}", trace)
    if span == VALID.split("-")[2]:
        probe.fail("a parent-id of the engine's own", "the one that came in")


def _states(_: Declared) -> Iterable[Case]:
    return _with(
        ((PARENT, VALID), (STATE, VALID_STATE)),
        ((STATE, VALID_STATE),),
        ((PARENT, INVALID[1]), (STATE, VALID_STATE)),
    )


@check(
    "OE-CORE-TRACE-007",
    table=_states,
    advice="Pass tracestate on as it came, your own member in front at most, and only where you "
    "pass traceparent on.",
)
def state_passed_on(probe: Probe, case: Case) -> None:
    """Tracestate goes with traceparent only, and members of others stay as they are."""
    fetch = _fetched(probe, case)
    members = [member.strip() for value in fetch.values(STATE) for member in value.split(",")]
    sent = [member for value in values(case.metadata, STATE) for member in value.split(",")]
    parents = values(case.metadata, PARENT)
    kept = [member for member in members if member in sent]
    if members and not fetch.values(PARENT):
        probe.fail("no tracestate without traceparent on a call", f"{len(members)} members")
    if not parents or parent_kind(parents[0]) is Parent.INVALID:
        if kept:
            probe.fail("a tracestate without valid traceparent to be dropped", ", ".join(kept))
    elif members and kept != sent:
        probe.fail(f"the members {', '.join(sent)} as they came", ", ".join(members))
