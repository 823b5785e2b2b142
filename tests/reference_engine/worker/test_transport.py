"""The rules of the worker contract in process, on a virtual clock: twins of the wire checks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from reference_engine.worker.contract import (
    Answer,
    Busy,
    InferenceFailed,
    InvalidRequest,
    Outcome,
    Readiness,
    Report,
    Unavailable,
    Worker,
)
from reference_engine.worker.queue import QueuedWorker
from reference_engine.worker.settings import TransportSettings
from reference_engine.worker.transport import worker_app
from tests.reference_engine.worker.virtual import Call, run_virtual

SETTINGS = TransportSettings(body_limit=16, budget_seconds=10.0, budget_header="x-budget-ms")
HEALTH = {"path": "/health", "method": "GET", "parts": ((0.0, b""),)}


@dataclass
class Toy(Worker):
    """Answers with `outcome` after `seconds`, and remembers what it was asked."""

    outcome: Any = field(default_factory=lambda: Answer(b"{}"))
    seconds: float = 0.0
    state: Readiness = Readiness.READY
    reason: str | None = None
    measured: Report | None = None
    asked: list[tuple[bytes, float]] = field(default_factory=list)
    cancelled: int = 0

    def readiness(self) -> Readiness:
        return self.state

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        self.asked.append((body, deadline))
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def report(self) -> Report | None:
        return self.measured

    def failure(self) -> str | None:
        return self.reason


class Smallest(Worker):
    """Implements what has to be implemented, and nothing else."""

    def readiness(self) -> Readiness:
        return Readiness.READY

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        return Answer(body)


def ask(worker: Worker, **call: Any) -> Call:
    return run_virtual(Call(**call).run(worker_app(worker, SETTINGS)))


def test_w01_starting_is_503_and_sees_nothing():
    """A worker that starts gets no work, and its health says so without counters."""
    worker = Toy(state=Readiness.STARTING, measured=Report(0, 1, 0))
    seen = ask(worker)
    assert (seen.status, seen.json) == (503, {"error": "model unavailable"})
    assert worker.asked == []
    seen = ask(worker, **HEALTH)
    assert (seen.status, seen.json) == (503, {"status": "starting"})


def test_w02_failed_is_503_and_says_why():
    """The reason passes through word for word."""
    reason = 'no "weights"\n\ud800'
    worker = Toy(state=Readiness.FAILED, reason=reason)
    assert (ask(worker).status, worker.asked) == (503, [])
    seen = ask(worker, **HEALTH)
    assert (seen.status, seen.json) == (503, {"status": "failed", "reason": reason})


def test_w03_ready_is_200():
    """The worker's answer, as JSON."""
    seen = ask(Toy(outcome=Answer(b'{"a":1}')))
    assert (seen.status, seen.body) == (200, b'{"a":1}')
    assert seen.sent["content-type"] == "application/json"


def test_w04_slow_upload_is_504():
    """The upload counts towards the budget, and the worker never hears of it."""
    worker = Toy()
    seen = ask(worker, parts=tuple((3.0, b"x") for _ in range(5)))
    assert (seen.status, seen.seconds, worker.asked) == (504, 10.0, [])


def test_w05_silence_is_504_at_the_end_of_the_budget():
    """Not before it, not after it, and the work is cancelled."""
    worker = Toy(seconds=1e6)
    seen = ask(worker)
    assert (seen.status, seen.seconds, worker.cancelled) == (504, 10.0, 1)


def test_w06_waiting_in_the_queue_is_504():
    """The budget of a queued request ends while another one is computed."""

    async def main():
        queue = QueuedWorker(2)
        queue.open(_slow(12.0))
        app = worker_app(queue, SETTINGS)
        first = asyncio.create_task(Call().run(app))
        await asyncio.sleep(1.0)
        second = await Call(headers=(("x-budget-ms", "5000"),)).run(app)
        await first
        # The decision that had begun is finished, and only then is its place free.
        busy = queue.report()
        await asyncio.sleep(5.0)
        return second, first.result(), busy, queue.report()

    second, first, busy, after = run_virtual(main())
    assert (second.status, second.seconds) == (504, 5.0)
    assert (first.status, first.seconds) == (504, 10.0)
    assert busy == Report(1, 2, 1)
    assert after == Report(0, 2, 2)


def _slow(seconds: float):
    async def decide(body: bytes) -> Outcome:
        await asyncio.sleep(seconds)
        return Answer(body)

    return decide


def test_w07_busy_is_503_at_once_and_asked_once():
    """No retry, no waiting."""
    worker = Toy(outcome=Busy())
    seen = ask(worker)
    assert (seen.status, seen.json) == (503, {"error": "inference queue full"})
    assert (len(worker.asked), seen.seconds) == (1, 0.0)


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ({"headers": (("content-length", "17"),), "parts": ((99.0, b"x" * 17),)}, 413),
        ({"parts": ((0.0, b"x" * 16), (0.0, b"x"), (99.0, b""))}, 413),
        ({"headers": (("content-length", "16"),), "parts": ((0.0, b"x" * 16),)}, 200),
    ],
)
def test_w08_the_limit_is_exact(call, status):
    """An announced length is refused unread, a chunked one at the first byte too many."""
    worker = Toy()
    seen = ask(worker, **call)
    assert (seen.status, seen.seconds, len(worker.asked)) == (status, 0.0, int(status == 200))


@pytest.mark.parametrize("body", [b"", b"\x00" * 16, b"\xff\xfe\xc3\x28", bytes(range(16))])
def test_w09_bytes_are_bytes(body):
    """In both directions."""
    worker = Toy(outcome=Answer(body))
    seen = ask(worker, parts=((0.0, body),))
    assert (seen.body, worker.asked[0][0]) == (body, body)


@pytest.mark.parametrize("text", ['"', "a\nb\r\t", "\x00\x1f\x7f", "\u2028\u2029", "\ud800", ""])
def test_w10_the_workers_text_survives(text):
    """As the error of a JSON object."""
    seen = ask(Toy(outcome=InvalidRequest(text)))
    assert (seen.status, seen.json) == (400, {"error": text})


@pytest.mark.parametrize(("depth", "shown"), [(0, "0"), (7, "7"), (None, None)])
def test_w11_the_depth_is_the_replys(depth, shown):
    """0 is shown, and nothing is not 0."""
    seen = ask(Toy(outcome=Answer(b"", depth), measured=Report(3, 4, 5)))
    assert seen.sent.get("x-queue-depth") == shown


def test_w11_health_shows_what_is_measured():
    """Counter by counter."""
    assert ask(Smallest(), **HEALTH).json == {"status": "ok"}
    assert ask(Toy(measured=Report(capacity=4)), **HEALTH).json == {"status": "ok", "capacity": 4}


def test_w12_w13_refusals_are_counted_and_places_freed():
    """Full, refused, free again."""

    async def main():
        queue = QueuedWorker(1)
        queue.open(_slow(2.0))
        app = worker_app(queue, SETTINGS)
        first = asyncio.create_task(Call().run(app))
        await asyncio.sleep(1.0)
        refused = await Call().run(app)
        full = queue.report()
        await first
        again = await Call().run(app)
        await queue.close()
        return refused, full, again, queue.report()

    refused, full, again, after = run_virtual(main())
    assert (refused.status, again.status) == (503, 200)
    assert (full, after) == (Report(1, 1, 1), Report(0, 1, 1))


def test_w14_callers_who_leave_are_accounted_for():
    """A queued request goes with its caller, a running one ends first; both count as rejected."""

    async def main():
        queue = QueuedWorker(3)
        queue.open(_slow(4.0))
        app = worker_app(queue, SETTINGS)
        calls = [asyncio.create_task(Call(leaves=1.0).run(app)) for _ in range(2)]
        await asyncio.gather(*calls)
        left = queue.report()
        answered = await Call().run(app)
        return left, answered, queue.report()

    left, answered, after = run_virtual(main())
    assert left == Report(1, 3, 1)
    assert (answered.status, after) == (200, Report(0, 3, 2))


def test_w15_the_deadline_counts_from_the_headers():
    """An upload of three seconds leaves seven."""
    worker = Toy()
    ask(worker, parts=((3.0, b"x"),))
    assert worker.asked == [(b"x", 10.0)]


@pytest.mark.parametrize("asked", ["0", "1"])
def test_w15_a_budget_that_is_used_up_is_not_handed_over(asked):
    """504 without a submit."""
    worker = Toy()
    parts = ((0.001 * int(asked), b"x"),)
    seen = ask(worker, headers=(("x-budget-ms", asked),), parts=parts)
    assert (seen.status, worker.asked) == (504, [])


def test_a_caller_cannot_ask_for_more():
    """The operator's budget is the most; what is no number is the caller's mistake."""
    worker = Toy(seconds=1e6)
    assert ask(worker, headers=(("x-budget-ms", "9" * 30),)).seconds == 10.0
    assert ask(worker, headers=(("x-budget-ms", "soon"),)).status == 400


def test_w18_a_flip_does_not_touch_what_runs():
    """Readiness decides about new requests only."""

    async def main():
        worker = Toy(seconds=5.0)
        running = asyncio.create_task(Call().run(worker_app(worker, SETTINGS)))
        await asyncio.sleep(1.0)
        worker.state = Readiness.FAILED
        return (await running).status

    assert run_virtual(main()) == 200


def test_w19_a_body_that_breaks_off_is_400():
    """And not 413, and the worker sees nothing of it."""
    worker = Toy()
    seen = ask(worker, parts=((0.0, b"x"), (1.0, b"")), breaks=True)
    assert (seen.status, worker.asked) == (400, [])


def test_w20_a_failed_inference_is_500():
    """With its own error."""
    seen = ask(Toy(outcome=InferenceFailed()))
    assert (seen.status, seen.json) == (500, {"error": "inference failed"})


@pytest.mark.parametrize("outcome", [Unavailable(), RuntimeError("lost"), asyncio.CancelledError()])
def test_w21_work_that_is_not_done_is_503(outcome):
    """Whether the worker says so or drops the reply."""
    assert ask(Toy(outcome=outcome)).status == 503


def test_the_smallest_worker_is_served():
    """Two methods are enough."""
    seen = ask(Smallest(), parts=((0.0, b"abc"),))
    assert (seen.status, seen.body) == (200, b"abc")


def test_a_decision_that_raises_leaves_the_queue_running():
    """The next request is answered."""

    async def main():
        async def decide(body: bytes) -> Outcome:
            if body == b"bad":
                raise ValueError(body)
            return Answer(body)

        queue = QueuedWorker(2)
        queue.open(decide)
        app = worker_app(queue, SETTINGS)
        bad = await Call(parts=((0.0, b"bad"),)).run(app)
        good = await Call().run(app)
        return bad.status, good.status, queue.report()

    assert run_virtual(main()) == (500, 200, Report(0, 2, 0))


def test_closing_lets_the_running_decision_end():
    """What waits is unavailable, what runs is answered, and nothing new is admitted."""

    async def main():
        queue = QueuedWorker(3)
        queue.open(_slow(2.0))
        app = worker_app(queue, SETTINGS)
        calls = [asyncio.create_task(Call().run(app)) for _ in range(2)]
        await asyncio.sleep(1.0)
        await queue.close()
        late = await Call().run(app)
        return [(await call).status for call in calls], late.status, queue.report().depth

    assert run_virtual(main()) == ([200, 503], 503, 0)
