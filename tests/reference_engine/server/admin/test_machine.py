"""Requests, pauses, resumes, resets and aborts in any order, beside a small model."""

from dataclasses import dataclass
from typing import Any

import grpc
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from oe_wire import v1
from reference_engine.server.deployment import PausedAdmission
from tests.reference_engine.server.admin.calls import (
    ABORT,
    CONFIG,
    KEEP,
    NOT_SERVING,
    PAUSED,
    RUNNING,
    SERVING,
    WAIT,
    options,
    pause,
    reset,
    resume,
    state,
    status,
)
from tests.reference_engine.server.running import (
    Outcome,
    Running,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

CODE = grpc.StatusCode
PROMPTS = ("a", "another prompt of some blocks", "another prompt of other blocks")
SHORT = 20


@dataclass(eq=False)
class Asked:
    """A request of the machine: `may_be_cut` once something may have ended it early."""

    call: Any
    request_id: str
    prompt: str
    endless: bool
    may_be_cut: bool = False


class AdminMachine(RuleBasedStateMachine):
    """One engine for all examples: each leaves it running and idle."""

    engine: Running
    holds_new: bool
    alone: dict[str, list[int]]

    def __init__(self) -> None:
        super().__init__()
        self.mode = 0
        self.asked: list[Asked] = []
        self.revision = state(self.engine).admin_revision

    @rule(prompt=st.sampled_from(PROMPTS), endless=st.booleans())
    @precondition(lambda self: len(self.asked) < 8)
    def ask(self, prompt, endless):
        request = long_request(prompt=prompt) if endless else generate_request(prompt)
        if not endless:
            request.stopping.max_tokens = SHORT
            request.stopping.ignore_eos = True
        call = self.engine.start_generate(request)
        if self.mode and not self.holds_new:
            assert finish(call).code is CODE.UNAVAILABLE
            return
        call.initial_metadata()
        self.asked.append(Asked(call, request.request_id, prompt, endless))

    @rule(mode=st.sampled_from((ABORT, KEEP)), clear=st.booleans())
    def pause(self, mode, clear):
        outcome = pause(self.engine, mode, reset_prefix_cache=clear)
        if self.mode not in (0, mode):
            assert outcome.code is CODE.FAILED_PRECONDITION
            return
        assert outcome.message.scheduler == PAUSED
        if mode == ABORT and not self.mode:
            for one in self.asked:
                one.may_be_cut = True
        self.mode = mode

    @rule()
    def pause_and_wait(self):
        outcome = pause(self.engine, WAIT, timeout_ms=60_000 if self.ends_alone else 5)
        if self.mode not in (0, WAIT):
            assert outcome.code is CODE.FAILED_PRECONDITION
        elif self.mode == WAIT or self.ends_alone:
            assert outcome.message.scheduler == PAUSED
            self.mode = WAIT
        else:
            assert outcome.code is CODE.DEADLINE_EXCEEDED

    @property
    def ends_alone(self) -> bool:
        """Whether nothing that may still run would do so for ever."""
        return not any(one.endless and not one.may_be_cut for one in self.asked)

    @rule()
    def resume(self):
        assert resume(self.engine).message.scheduler == RUNNING
        self.mode = 0

    @rule()
    def reset(self):
        assert list(reset(self.engine).message.reset) == [v1.CACHE_KIND_PREFIX]

    @rule(data=st.data())
    @precondition(lambda self: self.asked)
    def abort(self, data):
        one = data.draw(st.sampled_from(self.asked))
        assert self.engine.abort(one.request_id).code is CODE.OK
        one.may_be_cut = True
        self.finish(one)

    @rule(data=st.data())
    @precondition(lambda self: self.asked)
    def cancel(self, data):
        one = data.draw(st.sampled_from(self.asked))
        one.call.cancel()
        self.asked.remove(one)

    @rule(data=st.data())
    @precondition(lambda self: not self.mode and self.asked)
    def read(self, data):
        one = data.draw(st.sampled_from(self.asked))
        if not one.endless:
            self.finish(one)

    @rule()
    def look(self):
        found = state(self.engine)
        assert found.scheduler == (PAUSED if self.mode else RUNNING)
        assert found.pause_mode == self.mode
        assert found.held_requests <= found.in_flight_requests <= len(self.asked) + 8
        if not self.mode:
            assert found.held_requests == 0
        if self.mode == KEEP:
            assert found.held_requests == found.in_flight_requests
        assert found.admin_revision >= self.revision
        self.revision = found.admin_revision
        assert status(self.engine) == (NOT_SERVING if self.mode else SERVING)

    def finish(self, one: Asked) -> None:
        """Read a request to its end: what it gave is what it gives alone, as far as it came."""
        self.asked.remove(one)
        outcome: Outcome = finish(one.call)
        assert outcome.code is CODE.OK
        (end,) = outcome.ends()
        ids = token_ids(outcome)
        assert ids[:SHORT] == self.alone[one.prompt][: len(ids)]
        if one.may_be_cut:
            assert end.reason in {v1.FINISH_REASON_CANCELLED, v1.FINISH_REASON_LENGTH}
        else:
            assert end.reason == v1.FINISH_REASON_LENGTH
            assert outcome.messages[-1].usage.completion_tokens == SHORT

    def teardown(self):
        resume(self.engine)
        for one in tuple(self.asked):
            if one.endless:
                self.engine.abort(one.request_id)
                one.may_be_cut = True
            self.finish(one)
        assert eventually(lambda: state(self.engine).in_flight_requests == 0)
        assert eventually(lambda: self.engine.free_blocks == self.engine.total_blocks)
        assert status(self.engine) == SERVING


def token_ids(outcome: Outcome) -> list[int]:
    return [record.token_id for record in outcome.records()]


def judge(admission: PausedAdmission) -> None:
    """Run the machine against an engine with that admission."""
    with serving(fake_model(), CONFIG, options(admission)) as engine:
        AdminMachine.engine = engine
        AdminMachine.holds_new = admission is PausedAdmission.HOLD
        AdminMachine.alone = {}
        for prompt in PROMPTS:
            request = generate_request(prompt)
            request.stopping.max_tokens = SHORT
            request.stopping.ignore_eos = True
            AdminMachine.alone[prompt] = token_ids(engine.generate(request))
        test = AdminMachine.TestCase
        test.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
        test("runTest").debug()


def test_reject():
    """An engine that refuses new work while paused."""
    judge(PausedAdmission.REJECT)


def test_hold():
    """An engine that holds new work while paused."""
    judge(PausedAdmission.HOLD)
