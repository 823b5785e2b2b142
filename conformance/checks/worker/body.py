"""The body: its limit, its bytes, and bodies that cannot be read."""

from __future__ import annotations

import hashlib

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import (
    SLACK_SECONDS,
    budget_headers,
    must_be,
    padded,
    raw,
    said,
    terms_of,
    work,
)
from conformance.checks.worker.stage import asked, staged
from conformance.http.raw import HalfClose, Pause, Step
from conformance.model.case import Case

BODIES = {
    "every byte": bytes(range(256)),
    "nothing": b"",
    "no text": b"\xff\xfe\x00\xc3\x28\xed\xa0\x80\r\n\r\n",
    "zeros": bytes(1000),
}
CHUNKED = ("transfer-encoding", "chunked")
# A body limit up to this is reached with a few sends; beyond it the check would be about speed.
MOST_BYTES = 64 * 1024 * 1024


@http_check(
    "OE-WORK-008",
    advice="Compare content-length with the limit before reading, and count the bytes of a chunked "
    "body while they come; answer 413 as soon as the limit is passed.",
    table=params({"kind": "announced"}, {"kind": "chunked"}, {"kind": "exact"}),
)
def limit(probe: HttpProbe, case: Case) -> None:
    """One byte over the limit is refused, and the limit itself is not."""
    most = terms_of(probe).body_limit
    if most > MOST_BYTES:
        probe.skip(f"a body of {most} bytes is too long to be sent", too_large=True)
    if case.params["kind"] == "exact":
        seen = work(probe, padded(probe, most))
        if seen.status == 413:
            probe.fail("a body of exactly the limit is not too long", said(seen), seen)
        return
    before = asked(probe)
    if case.params["kind"] == "announced":
        # Nothing of the body is sent: a server that wants it first runs into the budget.
        length = (("content-length", str(most + 1)),)
        seen = raw(probe, (*length, *_enough(probe)), (_wait(probe),))
    else:
        data = padded(probe, most + 1)
        # Without the last chunk: what has come is too long, whatever follows.
        chunk = b"%x\r\n" % len(data) + data + b"\r\n"
        seen = raw(probe, (CHUNKED, *_enough(probe)), (chunk, _wait(probe)))
    must_be(probe, seen, 413, "for a body of one byte more than the limit")
    if asked(probe) != before:
        probe.fail("no request for the worker", "it was asked", seen)


def _enough(probe: HttpProbe) -> tuple[tuple[str, str], ...]:
    return budget_headers(probe, probe.seconds(SLACK_SECONDS / 2))


def _wait(probe: HttpProbe) -> Pause:
    return Pause(terms_of(probe).budget_seconds + probe.seconds(SLACK_SECONDS))


@http_check(
    "OE-WORK-009",
    advice="Hand over the bytes of the body and pass on the bytes of the answer; the transport "
    "decodes, trims and rewrites nothing.",
    table=params(*({"body": name} for name in BODIES)),
)
def unchanged(probe: HttpProbe, case: Case) -> None:
    """Bytes pass through in both directions."""
    body = BODIES[case.params["body"]]
    with staged(probe, work="echo") as staging:
        seen = work(probe, body)
        must_be(probe, seen, 200, "for bytes that the worker gives back")
        if staging.counts().sha256 != hashlib.sha256(body).hexdigest():
            probe.fail("the worker sees the bytes that were sent", "others", seen)
        if seen.body != body:
            probe.fail("the caller sees the worker's bytes", "others", seen)


@http_check(
    "OE-WORK-019",
    advice="Tell a body that cannot be read from one that is too long: the former is 400, and "
    "nothing of it goes to the worker.",
    table=params({"kind": "bad chunk"}, {"kind": "early end"}),
)
def unreadable(probe: HttpProbe, case: Case) -> None:
    """A broken body is the caller's fault, and none of the worker's business."""
    before = asked(probe)
    if case.params["kind"] == "bad chunk":
        head = CHUNKED
        steps: tuple[Step, ...] = (b"4\r\n{}  \r\n", Pause(0.05), b"no number\r\n\r\n")
    else:
        head = ("content-length", "100")
        steps = (b"{}", Pause(0.05), HalfClose())
    seen = raw(probe, (head,), steps)
    # Many servers can say nothing more on a connection of which they can make no sense.
    if seen.status not in {None, 400}:
        probe.fail("400 for a body that cannot be read", said(seen), seen)
    if asked(probe) != before:
        probe.fail("no request for the worker", "it was asked", seen)
