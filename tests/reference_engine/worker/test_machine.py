"""503 and 504 never swap: the transport and its queue against a model, on a virtual clock.

Times are drawn so that no two events ever fall together: headers come at whole seconds, and
uploads, budgets, decisions and departures have fractions of their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reference_engine.worker import bounded, reply
from reference_engine.worker.contract import Answer, Outcome, Readiness, Worker
from reference_engine.worker.queue import QueuedWorker
from reference_engine.worker.settings import TransportSettings
from reference_engine.worker.transport import worker_app
from tests.reference_engine.worker.virtual import Call, VirtualLoop

MOST_CALLS = 25
SETTINGS = TransportSettings(budget_seconds=20.0, budget_header="x-budget-ms")
GONE = 499


@dataclass
class Plan:
    """One call as it was made. ready: what the worker was when the headers came."""

    number: int
    headers_at: float
    upload: float
    budget: float
    decision: float
    leaves: float | None
    ready: bool


class Flipping(Worker):
    """A queue whose readiness is set from outside, and kept with its times."""

    def __init__(self, queue: QueuedWorker) -> None:
        self.queue = queue
        self.state = Readiness.READY
        self.changes: list[tuple[float, bool]] = [(-1.0, True)]

    def readiness(self) -> Readiness:
        return self.state

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        return await self.queue.submit(body, deadline)

    def flip(self, state: Readiness, now: float) -> None:
        self.state = state
        self.changes.append((now, state is Readiness.READY))

    def ready_at(self, when: float) -> bool:
        return [ready for at, ready in self.changes if at <= when][-1]


def predicted(plans: list[Plan], worker: Flipping, capacity: int) -> dict[int, tuple[int, float]]:
    """Status and time of each call, from its own times and those of the calls before it."""
    ends: dict[int, tuple[int, float]] = {}
    places: list[float] = []  # when each accepted request stops counting in depth
    free = 0.0  # when the running decision ends
    for plan in sorted(plans, key=lambda plan: plan.headers_at + plan.upload):
        arrival = plan.headers_at + plan.upload
        deadline = plan.headers_at + plan.budget
        if not plan.ready:
            ends[plan.number] = (503, plan.headers_at)
        elif arrival > deadline:
            ends[plan.number] = (504, deadline)
        elif not worker.ready_at(arrival) or sum(end > arrival for end in places) >= capacity:
            ends[plan.number] = (503, arrival)
        else:
            limit, status = deadline, 504
            if plan.leaves is not None and plan.headers_at + plan.leaves < deadline:
                limit, status = plan.headers_at + plan.leaves, GONE
            begins = max(arrival, free)
            if begins > limit:
                places.append(limit)
                ends[plan.number] = (status, limit)
                continue
            free = begins + plan.decision
            places.append(free)
            ends[plan.number] = (200, free) if free < limit else (status, limit)
    return ends


class Machine(RuleBasedStateMachine):
    """Calls, passing time, and a worker that becomes ready, starting and failed."""

    @initialize(capacity=st.integers(1, 3))
    def begin(self, capacity: int) -> None:
        self.loop = VirtualLoop()
        self.capacity = capacity
        self.plans: list[Plan] = []
        self.tasks: list[asyncio.Task[Call]] = []
        self.rejected = 0
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        async def decide(body: bytes) -> Outcome:
            await asyncio.sleep(self.plans[int(body)].decision)
            return Answer(body)

        self.queue = QueuedWorker(self.capacity)
        self.queue.open(decide)
        self.worker = Flipping(self.queue)
        self.app = worker_app(self.worker, SETTINGS)

    @precondition(lambda self: len(self.plans) < MOST_CALLS)
    @rule(
        upload=st.integers(0, 4),
        budget=st.integers(0, 8),
        decision=st.integers(0, 5),
        leaves=st.none() | st.integers(0, 4),
    )
    def call(self, upload: int, budget: int, decision: int, leaves: int | None) -> None:
        number = len(self.plans)
        sent = upload + 0.01 + number * 1e-5
        plan = Plan(
            number,
            self.loop.time(),
            sent,
            budget + 0.003,
            decision + 0.0007,
            None if leaves is None else sent + leaves + 0.00245,
            self.worker.state is Readiness.READY,
        )
        self.plans.append(plan)
        call = Call(
            parts=((plan.upload, str(number).encode()),),
            headers=(("x-budget-ms", str(round(plan.budget * 1000))),),
            leaves=plan.leaves,
        )
        self.tasks.append(self.loop.create_task(call.run(self.app)))
        self._pass(0.0)

    @rule(seconds=st.integers(1, 6))
    def wait(self, seconds: int) -> None:
        self._pass(float(seconds))

    @rule(state=st.sampled_from(Readiness))
    def flip(self, state: Readiness) -> None:
        self.worker.flip(state, self.loop.time())

    def _pass(self, seconds: float) -> None:
        """Let time pass up to a whole second, and everything happen that is due."""
        end = round(self.loop.time()) + seconds

        async def rest() -> None:
            await asyncio.sleep(max(0.0, end - self.loop.time()))
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rest())

    @invariant()
    def every_end_is_the_predicted_one(self) -> None:
        expected = predicted(self.plans, self.worker, self.capacity)
        for plan, task in zip(self.plans, self.tasks, strict=True):
            status, when = expected[plan.number]
            if task.done():
                call = task.result()
                assert call.status == status, plan
                assert call.ended == pytest.approx(when, abs=1e-6), plan
            else:
                assert when > self.loop.time() - 1e-6, plan

    @invariant()
    def counts_are_sound(self) -> None:
        report = self.queue.report()
        assert 0 <= report.depth <= report.capacity == self.capacity
        assert report.rejected >= self.rejected
        self.rejected = report.rejected

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            self._pass(200.0)
            assert all(task.done() for task in self.tasks)
            self.every_end_is_the_predicted_one()
            assert self.queue.report().depth == 0
        finally:
            self.loop.run_until_complete(self._end())
            self.loop.close()

    async def _end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.queue.close()


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMachine = Machine.TestCase


def test_the_model_tells_503_from_504() -> None:
    """The prediction itself: a full queue is 503 at once, a used-up budget 504 at its end."""
    worker = Flipping(QueuedWorker(1))
    plans = [
        Plan(0, 0.0, 0.1, 2.0, 5.0, None, ready=True),
        Plan(1, 1.0, 0.1, 2.0, 5.0, None, ready=True),
    ]
    assert predicted(plans, worker, 1) == {0: (504, 2.0), 1: (503, 1.1)}


@pytest.mark.parametrize(("right", "wrong"), [(504, 503), (503, 504)])
def test_a_swap_is_noticed(monkeypatch: pytest.MonkeyPatch, right: int, wrong: int) -> None:
    """A transport that answers one for the other does not get through the machine."""
    error = bounded.error

    def swapped(status: int, text: str) -> object:
        return error(wrong if status == right else status, text)

    monkeypatch.setattr(bounded if right == 504 else reply, "error", swapped)
    quick = settings(
        max_examples=60,
        stateful_step_count=10,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate],
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Machine, settings=quick)
