"""A long generation that is aborted while it runs: what was seen before and after the answer.

A request may end by itself just before its Abort arrives, and the client sees that end later than
the engine. So an output counts as open only when it was far from its length when Abort answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.core.discovery_calls import answer
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import ActionKind, Event, Transcript
from oe_wire import v1

# Seconds in which an aborted stream must end (ABORT-005).
END_SECONDS = 5.0
# An output with fewer than this share of its tokens was surely open: at the paces of real engines
# the rest takes far longer than any delay between the engine and this client.
OPEN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class AbortRun:
    """One aborted stream.

    answer: the last Abort call. asked, answered: seconds from the start of the stream to that call
    and to its answer. in_time: whether the stream ended within END_SECONDS (widened) of the
    answer ABORTED. wanted: tokens that each of the `sequences` outputs was asked for.
    """

    stream: Transcript
    answer: Transcript
    asked: float
    answered: float
    in_time: bool
    wanted: int
    sequences: int

    @property
    def status(self) -> str:
        """Short name of the AbortStatus, or of the gRPC status when that is not OK."""
        return abort_status(self.answer)

    @property
    def was_active(self) -> bool:
        """Whether the request was surely running: messages came before the Abort was sent."""
        begun = any(event.seconds <= self.asked for event in self.stream.events)
        return begun and bool(self.open_indices)

    @property
    def open_indices(self) -> frozenset[int]:
        """Outputs that had not ended before the Abort, and were far from their length when it
        answered. Their terminal events may come before the answer.
        """
        before = [event for event in self.stream.events if event.seconds <= self.answered]
        ended = {finished_index(event) for event in before if event.seconds <= self.asked}
        return frozenset(
            index
            for index in range(self.sequences)
            if index not in ended and delivered(before, index) < OPEN_SHARE * self.wanted
        )


def abort_table(declared: Declared) -> Iterable[Case]:
    """One output aborted after its second message, and the most outputs aborted at once."""
    single = _case(declared, 1, 2)
    most = min(3, declared.max_num_sequences)
    return (single,) if most == 1 else (single, _case(declared, most, 1))


def abort_cases(declared: Declared) -> SearchStrategy[Case]:
    """The number of outputs and the moment of the Abort vary; 0 messages means while queued."""
    sequences = st.integers(1, min(3, declared.max_num_sequences))
    return st.builds(
        lambda count, after: _case(declared, count, after), sequences, st.integers(0, 4)
    )


def _case(declared: Declared, sequences: int, after: int) -> Case:
    request = long_request(declared, sequences=sequences)
    return Case(request, params={"abort_after_events": after})


def abort_status(call: Transcript) -> str:
    """ABORTED, ALREADY_FINISHED, UNSPECIFIED, another number, or how the call failed."""
    message = answer(call, v1.AbortResponse)
    if message is None:
        # With a word before it: a gRPC status is called ABORTED as well.
        return f"status {describe(call)}"
    value = v1.AbortStatus.DESCRIPTOR.values_by_number.get(message.status)
    return str(message.status) if value is None else value.name.removeprefix("ABORT_STATUS_")


def send_abort(probe: Probe, request_id: str, stream: LiveCall | None = None) -> Transcript:
    """Abort a request by id; noted in the transcript of its stream first."""
    if stream is not None:
        stream.act(ActionKind.ABORT)
    return probe.call("Control/Abort", v1.AbortRequest(request_id=request_id))


def run_abort(probe: Probe, case: Case) -> AbortRun:
    """Start the case's request, abort it after the case's count of messages, see it end.

    A stream that does not end in time is cancelled, so that it costs no more; so is one whose
    Abort did not answer ABORTED. Skips the case when the engine refuses the request or cannot
    generate.
    """
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    request = probe.prepared(case)
    live = probe.start_generate(replace(case, request=request))
    answer_call = _abort_after(probe, live, request.request_id, case.params["abort_after_events"])
    aborted = abort_status(answer_call) == "ABORTED"
    in_time = aborted and live.wait_end(probe.pace.required(END_SECONDS) + margin(probe))
    if not in_time:
        live.cancel()
    stream = probe.finish(live)
    if stream.rejected:
        probe.skip(f"the request was refused: {describe(stream)}")
    aborts = [action.seconds for action in stream.actions if action.kind is ActionKind.ABORT]
    asked = max(aborts, default=0.0)
    return AbortRun(
        stream=stream,
        answer=answer_call,
        asked=asked,
        answered=asked + answer_call.ending.seconds,
        in_time=in_time,
        wanted=request.stopping.max_tokens,
        sequences=max(1, request.sampling.num_sequences),
    )


def margin(probe: Probe) -> float:
    """Seconds allowed on top of a stated limit: two calls at twenty times their usual time, and
    a second for a loaded machine.
    """
    return probe.pace.slow_factor * (1.0 + 40 * probe.pace.unary)


def _abort_after(probe: Probe, live: LiveCall, request_id: str, count: int) -> Transcript:
    """Abort when `count` messages have arrived; the last Abort call."""
    if count > 0:
        live.wait_event(count, timeout=probe.pace.generate_limit(count))
        return send_abort(probe, request_id, live)
    return _abort_early(probe, live, request_id)


def _abort_early(probe: Probe, live: LiveCall, request_id: str) -> Transcript:
    """Abort before the first message. The Abort may overtake the request, so it is sent again
    until it hits, or until a message shows that the engine has the request.
    """
    calls: list[Transcript] = []

    def answered() -> bool:
        known = bool(live.events) or live.done
        calls.append(send_abort(probe, request_id, live))
        return known or abort_status(calls[-1]) == "ABORTED"

    probe.wait_until(answered, probe.pace.generate_limit(1))
    return calls[-1]


def finished_index(event: Event) -> int | None:
    """Output that a GenerationFinished ends, None for any other message."""
    message = cast(v1.GenerateResponse, event.message)
    return message.finished.output_index if message.HasField("finished") else None


def responses_of(stream: Transcript) -> list[v1.GenerateResponse]:
    """The messages of a Generate stream, typed."""
    return [cast(v1.GenerateResponse, message) for message in stream.messages]


def delivered(events: Iterable[Event], index: int) -> int:
    """Tokens of an output among the events of its stream."""
    messages = [cast(v1.GenerateResponse, event.message) for event in events]
    return sum(
        len(message.token.tokens)
        for message in messages
        if message.HasField("token") and message.token.output_index == index
    )
