"""How a check of a validation row sends a request and compares the answer with the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

import grpc
from hypothesis import strategies as st

from conformance.checks.check import Strategy, Table
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.oracle import Expectation, expect
from conformance.oracle.expectation import Codes
from conformance.strategies import simple_request
from conformance.strategies.faults import faulty, with_fault
from conformance.wire.declared import Declared
from conformance.wire.transcript import Origin, Transcript
from oe_wire import v1

# A stream that has brought this many messages was accepted; it is cut short, because a request
# that should have been refused may ask for a whole window of tokens.
ENOUGH_MESSAGES = 3
# Statuses of an engine that has no room or no time: nothing is learnt about validation.
BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
# Rows that v0.1.0 engines may answer with UNIMPLEMENTED instead: each is about something
# that the model lacks, and the released API text names no status for it.
UNSUPPORTED = frozenset(
    f"OE-CORE-GEN-{number}" for number in ("008", "012", "023", "025", "027", "028")
)
# Event codes after acceptance that say the same, or that someone else ended the request.
DISTURBED = (v1.ERROR_CODE_OVERLOADED, v1.ERROR_CODE_CANCELLED)


def skip_uncertain(probe: Probe) -> NoReturn:
    """The table holds no request: a limit is unreported, or too large to go beyond."""
    probe.skip("no request certainly breaks this row within reasonable cost", too_large=True)


def faults_of(row: str) -> Table:
    """A table: the simplest request with each fault of the core row (`GEN-001`).

    One empty case where the declarations make no fault certain; `judge` says so.
    """

    def table(declared: Declared) -> Iterable[Case]:
        return with_fault(declared, simple_request(declared), f"OE-CORE-{row}") or [Case()]

    return table


def any_with(row: str) -> Strategy:
    """A strategy: any valid request with one fault of the core row."""

    def strategy(declared: Declared) -> st.SearchStrategy[Case]:
        return faulty(declared, f"OE-CORE-{row}")

    return strategy


def judge(probe: Probe, case: Case, *, served_too: bool = True) -> Transcript:
    """Send the case; the oracle says whether it must be served or refused by the row under test.

    Skips when neither is certain, or when another row refuses the request as well. served_too:
    whether a refusal of a valid request would be about the row under test.
    """
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if expectation.accepted and served_too:
        return served(probe, case, request)
    if not expectation.only(probe.requirement):
        probe.skip(f"the request decides nothing about this row: {expectation.describe()}")
    return refused(probe, case, request, expectation)


def served(probe: Probe, case: Case, request: v1.GenerateRequest) -> Transcript:
    """Send a request that must be accepted and brought to its end."""
    transcript = probe.call(GENERATE, request, metadata=case.metadata)
    completed(probe, transcript)
    return transcript


def completed(probe: Probe, transcript: Transcript) -> None:
    """The engine must have accepted the request and served it; a full engine is a skip.

    How a stream that has finished its output is closed is the matter of the stream rows.
    """
    ending = transcript.ending
    if finishes(transcript):
        return
    if ending.origin is Origin.REMOTE and ending.code in BUSY:
        probe.skip(f"the engine was busy: {ending.code.name}")
    if not ending.ok:
        probe.fail("acceptance, then OK: the request is valid", describe(transcript), transcript)
    for at, error in engine_errors(transcript):
        if error.code in DISTURBED:
            probe.skip(f"the request was disturbed: {v1.ErrorCode.Name(error.code)}")
        actual = f"EngineError {error_name(error)}"
        probe.fail("acceptance, then tokens: the request is valid", actual, transcript, at)


def refused(
    probe: Probe, case: Case, request: v1.GenerateRequest, expectation: Expectation
) -> Transcript:
    """Send a request that must be refused, with a status that the row under test allows."""
    transcript = send_cut(probe, case, request)
    expect_refusal(probe, transcript, expectation.broken[probe.requirement])
    return transcript


def judge_offer(probe: Probe, case: Case, honoured: Callable[[Transcript], bool]) -> Transcript:
    """Judge a request for something that is not declared, or illegal.

    It must be refused by the row under test. To ignore what was asked for breaks the row; to do
    it, which honoured tells from the whole stream, is a fault of discovery and only a warning.
    """
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if not expectation.only(probe.requirement):
        probe.skip(f"the request decides nothing about this row: {expectation.describe()}")
    transcript = probe.call(GENERATE, request, metadata=case.metadata)
    codes = expectation.broken[probe.requirement]
    if finishes(transcript) and not list(engine_errors(transcript)) and honoured(transcript):
        names = " or ".join(sorted(code.name for code in codes))
        actual = "it is served as asked, so discovery leaves it out"
        probe.tolerate(f"{names}: it is not declared", actual, transcript)
    expect_refusal(probe, transcript, codes)
    return transcript


def expect_refusal(probe: Probe, transcript: Transcript, codes: Codes) -> None:
    """The call must have been refused with one of `codes`, before acceptance."""
    early = bool(transcript.events) and not transcript.ending.ok
    if early and transcript.undisturbed and transcript.ending.code in codes:
        probe.skip("messages came before the refusal, which is not this row's matter")
    if not transcript.rejected or transcript.ending.code not in codes:
        names = " or ".join(sorted(code.name for code in codes))
        tolerate_unimplemented(probe, transcript, f"{names} for what the model lacks")
        probe.fail(f"{names} before acceptance", outcome(transcript), transcript)


def tolerate_unimplemented(probe: Probe, transcript: Transcript, expected: str) -> None:
    """Warn of a v0.1.0 engine that says UNIMPLEMENTED where rows of UNSUPPORTED fix another
    status; a zero num_sequences lacks nothing and is not among them.
    """
    request = transcript.request
    unimplemented = transcript.rejected and transcript.ending.code is grpc.StatusCode.UNIMPLEMENTED
    zero = (
        isinstance(request, v1.GenerateRequest)
        and request.sampling.HasField("num_sequences")
        and not request.sampling.num_sequences
    )
    if probe.declared.legacy and unimplemented and probe.requirement in UNSUPPORTED and not zero:
        probe.tolerate(expected, outcome(transcript), transcript)


def send_cut(probe: Probe, case: Case, request: v1.GenerateRequest) -> Transcript:
    """Send a request and stop reading once it is plain that the engine accepted it."""
    deadline = probe.pace.generate_limit(len(request.token_ids.ids) + 1)
    live = probe.start(GENERATE, request, metadata=case.metadata, deadline=deadline)
    if live.wait_event(ENOUGH_MESSAGES, deadline):
        live.cancel()
    return probe.finish(live)


def outcome(transcript: Transcript) -> str:
    """How a call went that should have been refused."""
    errors = [error for _, error in engine_errors(transcript)]
    if errors:
        return f"acceptance, then EngineError {error_name(errors[0])}"
    if transcript.actions and transcript.events:
        return f"acceptance: {len(transcript.events)} messages, then the check cancelled"
    if transcript.ending.ok:
        return f"acceptance: {describe(transcript)}"
    return describe(transcript)


def finishes(transcript: Transcript) -> list[tuple[int, v1.GenerationFinished]]:
    """Terminal events of outputs with their position in the stream."""
    return [
        (at, message.finished)
        for at, message in enumerate(transcript.messages)
        if isinstance(message, v1.GenerateResponse) and message.HasField("finished")
    ]


def engine_errors(transcript: Transcript) -> Iterable[tuple[int, v1.EngineError]]:
    """Error events with their position in the stream."""
    for at, message in enumerate(transcript.messages):
        if isinstance(message, v1.GenerateResponse) and message.HasField("error"):
            yield at, message.error


def error_name(error: v1.EngineError) -> str:
    """The name of the error's code without its prefix, or its number."""
    value = v1.ErrorCode.DESCRIPTOR.values_by_number.get(error.code)
    return str(error.code) if value is None else value.name.removeprefix("ERROR_CODE_")
