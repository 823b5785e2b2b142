"""Every shared fault as a mutant of one text API."""

from __future__ import annotations

from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.shape import Shape
from conformance.mutants.http.text import choices, ends, messages, stream_errors, usage

FAULTS = (
    *messages.FAULTS,
    *usage.FAULTS,
    *ends.FAULTS,
    *choices.FAULTS,
    *stream_errors.FAULTS,
)


def text_mutants(shape: Shape) -> tuple[HttpMutant, ...]:
    """Every shared mutant for one API."""
    return tuple(fault.mutant(shape) for fault in FAULTS)
