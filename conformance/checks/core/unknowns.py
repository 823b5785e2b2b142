"""What a later client may send (unknown enum values and fields), and what no engine may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import answer
from conformance.checks.core.judging import BUSY, finishes
from conformance.checks.core.plain_calls import plain_calls
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import ADMIN, TESTING
from conformance.laws.enums import newer, undefined
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies import simple_case, simple_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

UNKNOWN = 9999
# Field 19999 as a number, as a string, and as a message that holds an unknown field itself. No
# revision of the wire uses the number: protobuf keeps it for itself.
UNKNOWN_FIELDS: Mapping[str, bytes] = {
    "number": bytes((0xF8, 0xE1, 0x09, 0x01)),
    "text": bytes((0xFA, 0xE1, 0x09, 0x03)) + b"new",
    "message": bytes((0xFA, 0xE1, 0x09, 0x05, 0xFA, 0xE1, 0x09, 0x01, 0x41)),
}


@dataclass(frozen=True, slots=True)
class _Use:
    """A request with an enum value in one place. profile: empty for what every engine serves.
    undo: what to send when the engine takes it and should not have.
    """

    method: str
    profile: str
    build: Callable[[Declared, int], Message]
    undo: tuple[str, Message] | None = None


def _with_modality(declared: Declared, value: int) -> Message:
    request = simple_request(declared)
    request.media.add().modality = value
    return request


USES: Mapping[str, _Use] = {
    "Control.Health role": _Use(
        "openengine.v1.Control/Health", "", lambda _, value: v1.HealthRequest(role=value)
    ),
    "Generate media modality": _Use(GENERATE, "", _with_modality),
    "PauseGeneration mode": _Use(
        f"{ADMIN}/PauseGeneration",
        "admin",
        # The limit of zero makes it invalid in every mode, so that nothing is paused.
        lambda _, value: v1.PauseGenerationRequest(mode=value, timeout_ms=0),
        (f"{ADMIN}/ResumeGeneration", v1.ResumeGenerationRequest()),
    ),
    "ResetCache kinds": _Use(
        f"{ADMIN}/ResetCache", "admin", lambda _, value: v1.ResetCacheRequest(kinds=[value])
    ),
    "InjectFault kind": _Use(
        f"{TESTING}/InjectFault",
        "testing",
        lambda _, value: v1.InjectFaultRequest(kind=value),
        (f"{TESTING}/ClearFaults", v1.ClearFaultsRequest()),
    ),
}


def _enum_cases(declared: Declared) -> Iterable[Case]:
    return [
        Case(params={"use": name})
        for name, use in USES.items()
        if not use.profile or use.profile in declared.profiles
    ]


@check(
    "OE-CORE-ENUM-001",
    table=_enum_cases,
    advice="Read an enum value that you do not know as UNSPECIFIED, before anything is looked up "
    "by it.",
)
def unknown_value(probe: Probe, case: Case) -> None:
    """An unknown enum value has the effect of zero in the same place."""
    use = USES[case.params["use"]]
    plain = _once(probe, use, 0)
    unknown = _once(probe, use, UNKNOWN)
    if unknown.ending.code in BUSY or plain.ending.code in BUSY:
        probe.skip("the engine was busy")
    if unknown.ending.code is not plain.ending.code:
        wanted = f"{plain.ending.code.name} for the unknown value, as for UNSPECIFIED"
        probe.fail(wanted, describe(unknown), unknown)
    ours, theirs = answer(plain, v1.HealthResponse), answer(unknown, v1.HealthResponse)
    if ours is not None and theirs is not None and _checks(ours) != _checks(theirs):
        probe.fail("the checks of Control.Health as for UNSPECIFIED", "others", unknown)


def _once(probe: Probe, use: _Use, value: int) -> Transcript:
    request = use.build(probe.declared, value)
    if isinstance(request, v1.GenerateRequest):
        request = probe.prepared(Case(request))
    call = probe.call(use.method, request)
    if call.ending.ok and use.undo is not None:
        probe.call(*use.undo)
    return call


def _checks(message: v1.HealthResponse) -> set[str]:
    return {item.name for item in message.checks}


@check(
    "OE-CORE-ENUM-002",
    advice="Send only values of the protos whose revision you advertise; raise schema_revision "
    "with them.",
)
def defined_values_only(probe: Probe, _: Case) -> None:
    """No answer holds an enum value that its revision does not define."""
    for name, request in plain_calls(probe.declared).items():
        probe.call(name, request)
    if probe.declared.generates:
        probe.generate(simple_case(probe.declared))
    if not newer(probe.declared):
        probe.settle()
        return
    for call in probe.log.transcripts:
        for message in call.messages:
            for path, number in undefined(message):
                probe.tolerate(f"a known value in {path}", f"{number}, of a later revision", call)


def _field_cases(declared: Declared) -> Iterable[Case]:
    methods = [GENERATE, *plain_calls(declared)] if declared.generates else plain_calls(declared)
    kinds = list(UNKNOWN_FIELDS)
    return [
        Case(params={"method": method, "field": kinds[at % len(kinds)]})
        for at, method in enumerate(methods)
    ]


@check(
    "OE-CORE-ENUM-003",
    table=_field_cases,
    advice="Let the protobuf library skip fields that it does not know; do not compare the bytes "
    "of a request with what was parsed.",
)
def unknown_field(probe: Probe, case: Case) -> None:
    """A request with an unknown field is answered as it is without."""
    method, extra = case.params["method"], UNKNOWN_FIELDS[case.params["field"]]
    plain = probe.call(method, _request(probe, method))
    request = _request(probe, method)
    request.MergeFromString(extra)
    extended = probe.call(method, request)
    if plain.ending.code in BUSY or extended.ending.code in BUSY:
        probe.skip("the engine was busy")
    if extended.ending.code is not plain.ending.code:
        wanted = f"{plain.ending.code.name} with an unknown field, as without"
        probe.fail(wanted, describe(extended), extended)
    if method == GENERATE and finishes(plain) and not finishes(extended):
        probe.fail("an output with an unknown field, as without", describe(extended), extended)


def _request(probe: Probe, method: str) -> Message:
    if method == GENERATE:
        return probe.prepared(simple_case(probe.declared))
    found = plain_calls(probe.declared)[method]
    copy = type(found)()
    copy.CopyFrom(found)
    return copy
