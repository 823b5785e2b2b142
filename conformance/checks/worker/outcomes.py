"""What each outcome of the worker looks like to the caller."""

from __future__ import annotations

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import (
    COUNTERS,
    FAILED,
    error_of,
    health,
    must_be,
    said,
    start,
    work,
)
from conformance.checks.worker.stage import staged
from conformance.http.exchange import Exchange
from conformance.model.case import Case

DEPTH = "x-queue-depth"
TEXTS = {
    "quotes": 'field "kind": expected \'choice\' \\ "score"',
    "lines": "first\nsecond\r\n\tthird",
    "controls": "".join(map(chr, range(1, 32))) + "\x7f",
    "separators": "a\u2028b\u2029c",
    "beyond the BMP": "\U0001f600 \u00e9 \u0000",
    "lone surrogate": "a\ud800b",
}


@http_check(
    "OE-WORK-010",
    advice="Build the error body with a JSON encoder, never by putting the text between quotes.",
    table=params({"text": ""}, *({"text": name} for name in TEXTS)),
)
def invalid(probe: HttpProbe, case: Case) -> None:
    """The worker's words about a bad request survive."""
    if not case.params["text"]:
        _own_words(probe)
        return
    text = TEXTS[case.params["text"]]
    with staged(probe, work="invalid", text=text):
        seen = work(probe)
        must_be(probe, seen, 400, "for a request that the worker calls invalid")
        if seen.media_type != "application/json":
            probe.fail("the content type application/json", seen.media_type or "none", seen)
        if error_of(seen) != text:
            what = "another text" if isinstance(error_of(seen), str) else "no JSON with an error"
            probe.fail("the worker's text as the error", what, seen)


def _own_words(probe: HttpProbe) -> None:
    """What the worker itself says of bytes that hardly any worker calls valid."""
    seen = work(probe, b"\xff{]")
    if seen.status != 400:
        probe.skip(f"bytes that are no text got {said(seen)}")
    if not isinstance(error_of(seen), str) or not error_of(seen):
        probe.fail("a JSON object with the worker's text as the error", "another body", seen)


@http_check(
    "OE-WORK-020",
    advice="A decision that was begun and failed is 500; 503 would invite the caller to send the "
    "same request again.",
)
def inference_failed(probe: HttpProbe, _: Case) -> None:
    """A failed inference is 500."""
    with staged(probe, work="fail"):
        must_be(probe, work(probe), 500, "for an inference that failed", FAILED)


@http_check(
    "OE-WORK-021",
    advice="A request that the worker does not take, or takes and loses, is 503: nothing came of "
    "it.",
    table=params({"work": "unavailable"}, {"work": "drop"}),
)
def lost(probe: HttpProbe, case: Case) -> None:
    """Work that the worker does not do is 503."""
    with staged(probe, work=case.params["work"]):
        must_be(probe, work(probe), 503, "for work that the worker does not do")


def _depth(probe: HttpProbe, seen: Exchange) -> int:
    values = [value for name, value in seen.headers if name == DEPTH]
    if len(values) != 1 or not (values[0].isascii() and values[0].isdigit()):
        probe.fail(f"one {DEPTH} with a number", f"{len(values)} header lines", seen)
    return int(values[0])


@http_check(
    "OE-WORK-011",
    advice="Publish the depth that the reply carried; publish nothing for a worker that reported "
    "nothing.",
    table=params({"measured": None}, {"measured": True}, {"measured": False}),
)
def depth(probe: HttpProbe, case: Case) -> None:
    """The depth is what the worker measured, or absent."""
    if case.params["measured"] is None:
        seen = work(probe)
        if not any(name == DEPTH for name, _ in seen.headers):
            probe.skip(f"the answer has no {DEPTH}")
        _depth(probe, seen)
        return
    if not case.params["measured"]:
        _unmeasured(probe)
        return
    with staged(probe, work="hold") as staging:
        if "depth" not in (health(probe).json or {}):
            probe.skip("the worker measures no depth")
        first = start(probe)
        if not staging.holds(1):
            probe.finish(first)
            probe.skip("the worker did not take the first request")
        second = start(probe)
        before = staging.counts().asked
        probe.wait_until(lambda: staging.counts().asked > before, probe.seconds(1.0))
        staging.set(work="echo", release=True)
        answers = [probe.finish(first), probe.finish(second)]
        if any(answer.status != 200 for answer in answers):
            probe.skip("the queue has no room for two requests")
        one, two = (_depth(probe, answer) for answer in answers)
        if two != one + 1:
            probe.fail("a depth of one more for a request behind another", f"{two - one:+d}")


def _unmeasured(probe: HttpProbe) -> None:
    with staged(probe, work="echo", measured=False):
        seen = work(probe)
        must_be(probe, seen, 200, "from a worker that measures nothing")
        if seen.header(DEPTH):
            probe.fail(f"no {DEPTH} from a worker that measures nothing", "one", seen)
        answer = health(probe)
        must_be(probe, answer, 200, "from its health route")
        shown = [name for name in COUNTERS if name in (answer.json or {})]
        if shown:
            probe.fail("no counters from a worker that measures nothing", ", ".join(shown), answer)
