"""The law about enum values: at any depth, in any RPC, and only of the known revision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.protobuf.message import Message

from conformance.laws.enums import undefined
from conformance.wire.transcript import Event
from oe_wire import health, v1
from tests.conformance.laws.build import DECLARED, LENGTH, finished, found, request, rule, stream

UNKNOWN = 77


def answered(*messages: Message, method: str = "openengine.v1.Control/Health") -> object:
    """What the law says about a call with these answers."""
    call = stream(request(), finished(0, LENGTH))
    events = tuple(Event(0.1, message) for message in messages)
    return rule("ENUM-002", replace(call, method=method, events=events))


def test_defined_values_are_kept() -> None:
    """An answer whose values all have names is judged and fine."""
    assert rule("ENUM-002", stream(request(), finished(0, LENGTH))) is True


def test_an_answer_without_values_is_not_judged() -> None:
    """Nothing is claimed, so nothing is kept or broken."""
    assert answered(v1.HealthResponse()) is None


def test_an_undefined_value_is_found_with_its_event() -> None:
    """The second message of a stream."""
    broken = stream(request(), finished(0, LENGTH), finished(1, UNKNOWN))
    assert found("ENUM-002", broken) == 1


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (v1.HealthResponse(checks=[v1.HealthCheck(name="a", state=UNKNOWN)]), "checks.state"),
        (
            v1.Capabilities(profiles=[v1.ServiceProfile(roles=[0, UNKNOWN])]),
            "profiles.roles",
        ),
        (v1.Capabilities(core=v1.CoreCapabilities(abort_targets=[UNKNOWN])), "core.abort_targets"),
        (health.HealthCheckResponse(status=UNKNOWN), "status"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_are_found_at_any_depth(message: Message, path: str) -> None:
    """In lists, in messages of lists, in the health service."""
    assert list(undefined(message)) == [(path, UNKNOWN)]


def test_a_later_revision_is_not_judged() -> None:
    """Its values are its own; the check warns about them."""
    info = v1.EngineInfo(schema_revision=2)
    later = replace(DECLARED, engine_info=info)
    broken = stream(request(), finished(0, UNKNOWN))
    assert rule("ENUM-002", broken, later) is None
