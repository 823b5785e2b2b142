"""Whether a stream ended by itself, as one must that nobody cancelled or aborted."""

from __future__ import annotations

from conformance.checks.core.judging import engine_errors, error_name, finishes
from conformance.checks.probe import Probe, describe
from conformance.wire.transcript import Transcript
from oe_wire import v1


def disturbance(stream: Transcript) -> tuple[str, int | None] | None:
    """What shows that the stream was ended by something else, with the position of the message;
    None for terminal events with STOP or LENGTH, then OK.
    """
    for position, error in engine_errors(stream):
        return f"EngineError {error_name(error)}", position
    for position, finished in finishes(stream):
        if finished.reason == v1.FINISH_REASON_CANCELLED:
            return "CANCELLED", position
    if not stream.ending.ok or not finishes(stream):
        return describe(stream), None
    return None


def ended_by_itself(probe: Probe, stream: Transcript, what: str) -> None:
    """Fail when the stream was disturbed; `what` is the stream, for the report."""
    found = disturbance(stream)
    if found is not None:
        actual, position = found
        probe.fail(f"{what} to end normally", actual, stream, position)
