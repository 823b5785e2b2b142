"""How the stream of a running request ends after its Abort: in time, once, cancelled, in order."""

from __future__ import annotations

from conformance.checks.check import check
from conformance.checks.core.abort_run import (
    END_SECONDS,
    AbortRun,
    abort_cases,
    abort_table,
    finished_index,
    margin,
    responses_of,
    run_abort,
)
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from oe_wire import v1


def _aborted(probe: Probe, case: Case) -> AbortRun:
    """A run whose Abort answered ABORTED while an output was surely open; else skip."""
    run = run_abort(probe, case)
    if run.status != "ABORTED":
        probe.skip(f"Abort answered {run.status}, not ABORTED")
    if not run.open_indices:
        probe.skip("every output had ended, or nearly, when Abort was answered")
    return run


@check(
    "OE-CORE-ABORT-005",
    table=abort_table,
    strategy=abort_cases,
    advice="On abort end each open output once, close the stream with OK, and do it from the "
    "scheduler's next step rather than at the end of the generation.",
)
def aborted_stream_ends(probe: Probe, case: Case) -> None:
    """After ABORTED the stream ends in time, each output once, with OK."""
    run = _aborted(probe, case)
    if not run.in_time:
        waited = probe.pace.required(END_SECONDS) + margin(probe)
        probe.fail(
            f"the end of the stream within {END_SECONDS:g} s of ABORTED",
            f"still running after {waited:.1f} s",
            run.stream,
        )
    responses = responses_of(run.stream)
    errors = sum(response.HasField("error") for response in responses)
    if errors > 1:
        probe.fail("at most one EngineError", f"{errors} of them", run.stream)
    ended = [finished_index(event) for event in run.stream.events]
    counts = [ended.count(index) for index in range(run.sequences)]
    for index, count in enumerate(counts):
        if count > 1 or count + errors == 0:
            probe.fail(f"one terminal event for output {index}", f"{count} of them", run.stream)
    if errors and all(counts):
        probe.fail("one terminal event for each output", "an EngineError after them", run.stream)
    if not run.stream.ending.ok:
        probe.fail("OK after the terminal events", describe(run.stream), run.stream)


@check(
    "OE-CORE-ABORT-006",
    table=abort_table,
    strategy=abort_cases,
    advice="End an aborted output with GenerationFinished(CANCELLED), and put usage on the last.",
)
def aborted_outputs_cancelled(probe: Probe, case: Case) -> None:
    """Each output that was open ends with CANCELLED, the last message with usage."""
    run = _aborted(probe, case)
    if not run.in_time:
        probe.skip("the stream did not end in time")
    responses = responses_of(run.stream)
    errors = [response.error.code for response in responses if response.HasField("error")]
    wanted = "GenerationFinished with CANCELLED"
    if errors == [v1.ERROR_CODE_CANCELLED]:
        probe.tolerate(wanted, "EngineError with CANCELLED", run.stream)
    if errors:
        probe.fail(wanted, "EngineError with another code", run.stream)
    last = -1
    for position, event in enumerate(run.stream.events):
        if finished_index(event) not in run.open_indices:
            continue
        last = position
        reason = responses[position].finished.reason
        if reason != v1.FINISH_REASON_CANCELLED:
            probe.fail(wanted, f"the reason {reason}", run.stream, position)
    if last == -1:
        probe.skip("no open output has a terminal event")
    if not any(response.HasField("usage") for response in responses[last:]):
        probe.fail("usage on the last terminal event", "none", run.stream, last)


@check(
    "OE-CORE-ABORT-007",
    table=abort_table,
    strategy=abort_cases,
    advice="Drop what the engine produces for an output after its terminal event was queued, and "
    "queue what it produced before first.",
)
def nothing_after_terminal(probe: Probe, case: Case) -> None:
    """No tokens of an aborted output follow its terminal event."""
    run = _aborted(probe, case)
    ended: set[int] = set()
    all_ended = False
    for position, (event, response) in enumerate(
        zip(run.stream.events, responses_of(run.stream), strict=True)
    ):
        index = response.token.output_index
        if response.HasField("token") and (all_ended or index in ended):
            probe.fail(
                f"no tokens of output {index} after its terminal event",
                f"{len(response.token.tokens)} tokens",
                run.stream,
                position,
            )
        finished = finished_index(event)
        if finished is not None:
            ended.add(finished)
        all_ended = all_ended or response.HasField("error")
    if not (ended or all_ended):
        probe.skip("the stream has no terminal event")
