"""Numbers that an unreleased draft of the same schema revision gave out otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from google.protobuf.unknown_fields import UnknownFieldSet

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import read
from conformance.checks.core.judging import engine_errors
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import fault, paused
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared
from oe_wire import v1

DRAFT_NOT_READY = 5
DRAFT_INTERNAL = 12
DRAFT_SCHEMA_VERSION = 9
FEW_TOKENS = 4


def _numbering(declared: Declared) -> Iterable[Case]:
    places = {"admin": "health", "testing": "failure", "kv_handoff": "connector"}
    return [
        Case(params={"place": place})
        for profile, place in places.items()
        if profile in declared.profiles and (place != "failure" or declared.generates)
    ]


@check(
    "OE-CORE-COMPAT-004",
    table=_numbering,
    advice="Generate code from the released v0.1.0 protos: drafts of the same revision number "
    "NOT_READY, INTERNAL and schema_version otherwise.",
)
def released_numbers(probe: Probe, case: Case) -> None:
    """NOT_READY is 4, INTERNAL is 11 and schema_version is field 8."""
    look: dict[str, Callable[[Probe], None]] = {
        "health": _health_number,
        "failure": _failure_number,
        "connector": _connector_field,
    }
    look[case.params["place"]](probe)


def _health_number(probe: Probe) -> None:
    with paused(probe):
        state = read(probe, "Control/Health", v1.HealthRequest(), v1.HealthResponse)
    numbers = {state.message.state, *(item.state for item in state.message.checks)}
    if DRAFT_NOT_READY in numbers:
        probe.fail("4 for NOT_READY", f"{DRAFT_NOT_READY}", state.call)
    if state.message.state != v1.HEALTH_STATE_NOT_READY:
        probe.skip("Control.Health is not NOT_READY while the engine is paused")


def _failure_number(probe: Probe) -> None:
    request = probe.prepared(simple_case(probe.declared, prompt=PROSE, max_tokens=FEW_TOKENS))
    with fault(probe, v1.FAULT_KIND_REQUEST_FAILS, request_id=request.request_id):
        call = probe.generate(Case(request))
    errors = list(engine_errors(call))
    if not errors:
        probe.skip(f"the fault gave no EngineError: {describe(call)}")
    at, error = errors[0]
    if error.code == DRAFT_INTERNAL:
        probe.fail("11 for INTERNAL", f"{error.code}", call, at)
    if error.code != v1.ERROR_CODE_INTERNAL:
        probe.skip("the fault gave another code than INTERNAL")


def _connector_field(probe: Probe) -> None:
    info = read(probe, "Control/GetServerInfo", v1.GetServerInfoRequest(), v1.ServerInfo)
    unknown = UnknownFieldSet(info.message.kv_connector)
    numbers = [unknown[at].field_number for at in range(len(unknown))]
    if DRAFT_SCHEMA_VERSION in numbers:
        wanted = "no field 9 in kv_connector: schema_version is field 8"
        probe.fail(wanted, "a field 9", info.call)
