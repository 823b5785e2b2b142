"""Runs a history of starts, aborts and cancellations with several requests in flight, and judges
what is seen against the model of request ids.

Each breach belongs to the rule that the model names. The check whose rule it is fails; for any
other check it is a finding by the way, replayed like those of the laws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import grpc

from conformance.checks import steering
from conformance.checks.core.abort_run import OPEN_SHARE, abort_status, margin
from conformance.checks.core.discovery_calls import INFERENCE
from conformance.checks.core.judging import BUSY, engine_errors, outcome, send_cut
from conformance.checks.core.normal_end import disturbance
from conformance.checks.core.release import SECONDS, at_rest, running
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE, Finding
from conformance.model.case import Case
from conformance.oracle import lifecycle
from conformance.oracle.lifecycle import Breach, End, Lifecycle, Phase
from conformance.strategies import simple_request
from conformance.strategies.actions import Action
from conformance.strategies.simple import long_request
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1

SHORT_TOKENS = 3
# Messages that a request must still bring at the end; one or two may have been on their way.
LATER_MESSAGES = 3
# A request that brings nothing for 2 s and so many times the usual time is taken for queued: an
# engine that runs few at once is no matter of histories, and must not make them take hours.
BEGIN_TIMES = 20
# A history takes a second or two; ids that must be remembered for longer than this are.
REMEMBERED_MS = 30_000
# Seconds for which an id may be taken after the stream of its request has ended (GEN-004).
REUSE_SECONDS = 2.0
RULES = frozenset(
    value for name, value in vars(lifecycle).items() if name.isupper() and isinstance(value, str)
) - {lifecycle.ABORTED, lifecycle.ALREADY_FINISHED, lifecycle.NOT_FOUND}


class _Broken(Exception):
    """Ends a history at its first breach."""

    def __init__(self, breach: Breach, shown: Transcript | None) -> None:
        super().__init__(breach.requirement)
        self.breach = breach
        self.shown = shown


def run_history(probe: Probe, case: Case, *, alone: bool) -> None:
    """Run the case's actions. alone: whether nobody else uses the engine, so that the load can be
    judged; running_requests must then be told.
    """
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    history = _History(probe, at_rest(probe) if alone else None)
    broken: _Broken | None = None
    try:
        for action in case.params["actions"]:
            history.act(action)
        history.close()
    except _Broken as found:
        broken = found
    finally:
        history.end_all()
    if broken is not None:
        _attribute(probe, broken)
    for shown in probe.log.transcripts[-1:]:
        for rule in RULES - {probe.requirement}:
            probe.log.rulings.setdefault(rule, []).append((True, shown))


def _attribute(probe: Probe, broken: _Broken) -> NoReturn:
    breach = broken.breach
    shown = broken.shown or probe.log.transcripts[-1]
    if breach.requirement == probe.requirement:
        probe.fail(breach.expected, breach.actual, shown)
    finding = Finding(breach.expected, breach.actual)
    probe.log.rulings.setdefault(breach.requirement, []).append((finding, shown))
    probe.skip(f"the history breaks {breach.requirement}")


class _History:
    """The hands of one history: its ids, its running calls, and the model that is told of them."""

    def __init__(self, probe: Probe, base: int | None) -> None:
        scope = probe.declared.capabilities
        retention = 0 if scope is None else scope.core.finished_request_retention_ms
        self.probe = probe
        self.base = base
        self.model = Lifecycle(remembers=retention >= REMEMBERED_MS)
        self.ids: dict[int, str] = {}
        self.live: dict[int, LiveCall] = {}
        self.serves = steering.serving(probe, INFERENCE) == "SERVING"

    def act(self, action: Action) -> None:
        """Do one action and tell the model."""
        match action:
            case ["start", int(slot)]:
                self._start(slot, short=False)
            case ["short", int(slot)]:
                self._start(slot, short=True)
            case ["abort", int(slot)]:
                self._abort(slot, 1)
            case ["abort_twice", int(slot)]:
                self._abort(slot, 2)
            case ["cancel", int(slot)]:
                self._cancel(slot)
            case ["abort_all"]:
                self._abort_all()
            case ["health"] if self.serves:
                self._judge(self.model.health(steering.serving(self.probe, INFERENCE)))
            case ["load"]:
                self._load()
        for slot in tuple(self.model.running()):
            self._alive(slot)

    def close(self) -> None:
        """Judge what is left: requests that still run, those that left, the load."""
        for slot in tuple(self.model.running()):
            self._goes_on(slot)
        self._load()
        for slot in tuple(self.model.running()):
            self._cancel(slot)
        for slot in tuple(self.live):
            self._left(slot)
        self._load()

    def end_all(self) -> None:
        """End every call that is still open."""
        for live in self.live.values():
            live.cancel()
        for live in self.live.values():
            self.probe.finish(live)
        self.live.clear()

    def _judge(self, breach: Breach | None, shown: Transcript | None = None) -> None:
        if breach is not None:
            raise _Broken(breach, shown)

    def _id(self, slot: int) -> str:
        if slot not in self.ids:
            self.ids[slot] = self.probe.fresh_id()
        return self.ids[slot]

    def _alive(self, slot: int) -> None:
        """Make sure that a running request still runs, and will for a while."""
        live = self.live[slot]
        if live.done:
            stream = self.probe.finish(self.live.pop(slot))
            self._lost(slot, stream)
        tokens = sum(
            len(event.message.token.tokens)
            for event in live.events
            if isinstance(event.message, v1.GenerateResponse)
        )
        wanted = long_request(self.probe.declared).stopping.max_tokens
        if tokens > OPEN_SHARE * wanted:
            self.probe.skip("the engine is too fast for the longest request to stay in flight")

    def _goes_on(self, slot: int) -> None:
        """Make sure that a running request brings more messages."""
        live = self.live[slot]
        patience = self.probe.pace.generate_limit(LATER_MESSAGES)
        if not live.wait_event(len(live.events) + LATER_MESSAGES, patience) and not live.done:
            live.cancel()
            stream = self.probe.finish(self.live.pop(slot))
            self._judge(self.model.lost(slot, f"no message for {patience:.0f} s"), stream)
            self.probe.skip("a request made no progress")
        self._alive(slot)

    def _lost(self, slot: int, stream: Transcript) -> NoReturn:
        """A running request has ended: cancelled by someone, or excused."""
        found = disturbance(stream)
        excused = any(error.code != v1.ERROR_CODE_CANCELLED for _, error in engine_errors(stream))
        if found is not None and not excused:
            self._judge(self.model.lost(slot, found[0]), stream)
        self.probe.skip(f"a request did not stay in flight: {describe(stream)}")

    def _start(self, slot: int, *, short: bool) -> None:
        if self.model.slot(slot).phase is Phase.LEAVING:
            self._left(slot)
        if self.model.slot(slot).phase is Phase.RUNNING:
            self._duplicate(slot)
            return
        live = self._begin(slot, short=short)
        self.model.begun(slot)
        if not short:
            self.live[slot] = live
            return
        stream = self.probe.finish(live)
        if disturbance(stream) is not None:
            self._lost(slot, stream)
        self.model.ended(slot)

    def _begin(self, slot: int, *, short: bool) -> LiveCall:
        """Start a request until its id is free; its first message has come."""
        probe = self.probe
        after = self.model.slot(slot).end
        limit = probe.pace.required(SECONDS if after is End.CANCEL else REUSE_SECONDS)
        request = simple_request(probe.declared, max_tokens=SHORT_TOKENS)
        if not short:
            request = long_request(probe.declared)
        request.request_id = self._id(slot)
        patience = probe.pace.slow_factor * (2.0 + BEGIN_TIMES * probe.pace.first_token)
        refusals: list[Transcript] = []
        begun: list[LiveCall] = []

        def free() -> bool:
            live = probe.start(GENERATE, request)
            if live.wait_event(1, timeout=patience):
                begun.append(live)
                return True
            live.cancel()
            refusals.append(probe.finish(live))
            return refusals[-1].ending.code is not grpc.StatusCode.ALREADY_EXISTS

        in_time = probe.wait_until(free, limit)
        if not begun and not in_time and after is not End.NONE:
            raise _Broken(self.model.taken(slot, limit), refusals[-1])
        if not begun:
            probe.skip(f"a request did not begin: {describe(refusals[-1])}")
        return begun[0]

    def _duplicate(self, slot: int) -> None:
        self._alive(slot)
        request = simple_request(self.probe.declared)
        request.request_id = self._id(slot)
        call = send_cut(self.probe, Case(request), request)
        if call.rejected and call.ending.code in BUSY:
            self.probe.skip(f"the engine was busy: {call.ending.code.name}")
        if not call.rejected:
            self._alive(slot)
        answer = call.ending.code.name if call.rejected else outcome(call)
        self._judge(self.model.duplicate(slot, answer), call)

    def _abort(self, slot: int, times: int) -> None:
        """Abort an id once, or by two calls at the same time."""
        if self.model.slot(slot).phase is Phase.RUNNING:
            self._alive(slot)
        if slot in self.live:
            self.live[slot].act(ActionKind.ABORT)
        request = v1.AbortRequest(request_id=self._id(slot))
        started = [self.probe.start("Control/Abort", request) for _ in range(times)]
        calls = [self.probe.finish(call) for call in started]
        # Either may be the one that hits; the model is told of that one first.
        calls.sort(key=lambda call: _answer(call) != lifecycle.ABORTED)
        self._excuse([slot], calls[0])
        for call in calls:
            self._judge(self.model.aborted(slot, _answer(call)), call)

    def _excuse(self, slots: Iterable[int], call: Transcript) -> None:
        """An Abort that did not hit a running request may have come just after its end, by itself
        or by a failure, of which the news is on its way.
        """
        for slot in slots if _answer(call) != lifecycle.ABORTED else ():
            if self.model.slot(slot).phase is not Phase.RUNNING:
                continue
            live = self.live[slot]
            if live.wait_end(margin(self.probe)) and not _was_cancelled(live):
                self._lost(slot, self.probe.finish(self.live.pop(slot)))

    def _abort_all(self) -> None:
        for slot in tuple(self.model.running()):
            self._alive(slot)
        for live in self.live.values():
            live.act(ActionKind.ABORT)
        call = self.probe.call("Control/Abort", v1.AbortRequest(all_requests=v1.AllRequests()))
        self._excuse(self.model.running(), call)
        self._judge(self.model.aborted_all(_answer(call)), call)

    def _cancel(self, slot: int) -> None:
        if self.model.slot(slot).phase is not Phase.RUNNING:
            return
        self._alive(slot)
        self.live[slot].cancel()
        self.model.cancelled(slot)

    def _left(self, slot: int) -> None:
        """Wait for the end of a stream that was aborted or cancelled."""
        if slot not in self.live:
            return
        limit = self.probe.pace.required(SECONDS) + margin(self.probe)
        if not self.live[slot].wait_end(limit):
            breach = self.model.still_open(limit)
            self.live[slot].cancel()
            raise _Broken(breach, self.probe.finish(self.live.pop(slot)))
        self.probe.finish(self.live.pop(slot))
        self.model.ended(slot)

    def _load(self) -> None:
        """The load must settle at what runs. Only judged where nobody else uses the engine."""
        if self.base is None:
            return
        due, base = sum(1 for _ in self.model.running()), self.base
        limit = self.probe.pace.required(SECONDS) + self.probe.pace.unary
        self.probe.wait_until(lambda: running(self.probe) == base + due, limit)
        for slot in tuple(self.model.running()):
            self._alive(slot)
        seen = running(self.probe)
        if seen is not None:
            self._judge(self.model.load(seen - base))


def _was_cancelled(live: LiveCall) -> bool:
    return any(
        event.message.finished.reason == v1.FINISH_REASON_CANCELLED
        for event in live.events
        if isinstance(event.message, v1.GenerateResponse)
    )


def _answer(call: Transcript) -> str:
    """What an Abort answered, as the model takes it."""
    if call.rejected and call.ending.code is grpc.StatusCode.NOT_FOUND:
        return lifecycle.NOT_FOUND
    return abort_status(call)
