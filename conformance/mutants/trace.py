"""Mutants of trace context: an error where it is to be ignored."""

from __future__ import annotations

import re

from conformance.mutants.metadata import refusing
from conformance.mutants.methods import CONTROL_MODEL_INFO, GENERATE, SERVER_INFO, WATCH, each
from conformance.mutants.mutant import Mutant
from conformance.oracle.trace import PARENT, STATE, Parent, parent_kind, state_parses, values
from conformance.wire.transcript import Metadata

# Every value that the strict parser of a version-00 library takes.
_TODAY = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")


def _single(metadata: Metadata) -> str:
    """The one traceparent, empty when there is another number of them."""
    found = values(metadata, PARENT)
    return found[0] if len(found) == 1 else ""


def _any_context(metadata: Metadata) -> bool:
    return bool(values(metadata, PARENT))


def _invalid(metadata: Metadata) -> bool:
    parent = _single(metadata)
    return bool(parent) and parent_kind(parent) is Parent.INVALID


def _of_tomorrow(metadata: Metadata) -> bool:
    parent = _single(metadata)
    future = bool(parent) and parent_kind(parent) is Parent.FUTURE
    return future and _TODAY.fullmatch(parent) is None


def _repeated(metadata: Metadata) -> bool:
    return len(values(metadata, PARENT)) > 1 or len(values(metadata, STATE)) > 1


def _state_alone(metadata: Metadata) -> bool:
    return bool(values(metadata, STATE)) and not values(metadata, PARENT)


def _unparsable_state(metadata: Metadata) -> bool:
    return bool(_single(metadata)) and not all(map(state_parses, values(metadata, STATE)))


MUTANTS = (
    Mutant(
        "trace-refused-on-control",
        "OE-CORE-TRACE-001",
        "RPCs outside the data plane take no metadata at all.",
        {CONTROL_MODEL_INFO: refusing(_any_context)},
    ),
    Mutant(
        "trace-refused-on-watch",
        "OE-CORE-TRACE-001",
        "The health service rejects keys that it does not know.",
        {WATCH: refusing(_any_context)},
    ),
    Mutant(
        "invalid-traceparent-refused",
        "OE-CORE-TRACE-002",
        "A traceparent that does not parse is an invalid argument.",
        {GENERATE: refusing(_invalid)},
    ),
    Mutant(
        "future-traceparent-refused",
        "OE-CORE-TRACE-003",
        "The parser knows version 00 and two flags, and raises on anything else.",
        each((GENERATE, SERVER_INFO), refusing(_of_tomorrow)),
    ),
    Mutant(
        "repeated-trace-refused",
        "OE-CORE-TRACE-004",
        "Trace keys are read with a function that raises when there are several.",
        {GENERATE: refusing(_repeated)},
    ),
    Mutant(
        "tracestate-alone-refused",
        "OE-CORE-TRACE-005",
        "tracestate without traceparent is reported as half a context.",
        {GENERATE: refusing(_state_alone)},
    ),
    Mutant(
        "unparsable-tracestate-refused",
        "OE-CORE-TRACE-005",
        "A tracestate that does not parse is an invalid argument.",
        {GENERATE: refusing(_unparsable_state)},
    ),
)
