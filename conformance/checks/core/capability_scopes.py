"""Capabilities of the engine and of its models against each other and against other answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import grpc

from conformance.checks.check import check
from conformance.checks.core.capabilities import identity
from conformance.checks.core.discovery_calls import (
    Read,
    capabilities,
    read,
    supported_models,
)
from conformance.checks.probe import Probe, describe
from conformance.checks.violation import NotJudged
from conformance.model.case import Case
from conformance.model.facts import Value, read_field
from conformance.model.profile import Capability, Profile, Zero
from conformance.model.registry import default_registry
from conformance.strategies.faults import UNKNOWN_MODEL
from conformance.wire.transcript import Transcript
from oe_wire import v1

T = TypeVar("T")

# Tries to read several messages without a configuration change in between.
TRIES = 3
CAPABILITIES = "OpenEngineDiscovery/GetCapabilities"
# Numbers of which more is a promise of more. Floors, defaults and time limits are none.
PROMISES = ("core.finished_request_retention_ms", "kv.events.replay_buffer_batches")


@check(
    "OE-CORE-CAP-009",
    advice="Resolve the model name of GetCapabilities as GetModelInfo does; the empty name is the "
    "whole engine.",
)
def scopes_answer(probe: Probe, _: Case) -> None:
    """GetCapabilities knows the engine and each of its models, and no other name."""
    for name in ("", *supported_models(probe.declared)):
        call = probe.call(CAPABILITIES, v1.GetCapabilitiesRequest(model=name))
        if not call.ending.ok:
            what = f"the supported model {name!r}" if name else "the engine"
            probe.fail(f"OK for {what}", describe(call), call)
    call = probe.call(CAPABILITIES, v1.GetCapabilitiesRequest(model=UNKNOWN_MODEL))
    probe.expect_rejected(call, grpc.StatusCode.NOT_FOUND, because="no model has this name")


def at_one_revision(probe: Probe, look: Callable[[], T]) -> T:
    """What `look` saw while the engine stayed at one revision; skip when it never does."""
    for _try in range(TRIES):
        before = identity(capabilities(probe).message)
        seen = look()
        if identity(capabilities(probe).message) == before:
            return seen
    raise NotJudged("the configuration changed between the calls each time")


@check(
    "OE-CORE-CAP-010",
    advice="Build the engine's scope from what all models share: the smallest limits, and only "
    "flags and entries that every model has.",
)
def engine_scope_implied(probe: Probe, _: Case) -> None:
    """What the engine's scope promises holds in the scope of every model."""
    models = supported_models(probe.declared)
    if not models:
        probe.skip("supported_models is empty")
    scopes = at_one_revision(probe, lambda: [capabilities(probe, name) for name in ("", *models)])
    engine = scopes[0].message
    for name, scope in zip(models, scopes[1:], strict=True):
        for promise in _unkept(engine, scope.message, name):
            probe.fail(f"{promise} in the scope of {name!r}, as for the engine", "less", scope.call)


def _unkept(engine: v1.Capabilities, model: v1.Capabilities, name: str) -> Iterator[str]:
    """What the engine's scope promises for this model and the model's scope does not."""
    offered = {(item.name, item.major): item.minor for item in model.profiles}
    for item in engine.profiles:
        if item.models and name not in item.models:
            continue
        if offered.get((item.name, item.major), -1) < item.minor:
            yield f"the profile {item.name} {item.major}.{item.minor}"
            continue
        for field in _fields(item):
            if _less(field, read_field(engine, field.path), read_field(model, field.path)):
                yield field.path


def _fields(item: v1.ServiceProfile) -> Iterator[Capability]:
    """Capability fields of a profile that lie in Capabilities and say the same for each model."""
    profiles: tuple[Profile, ...] = default_registry().profiles
    for profile in profiles:
        if (profile.name, profile.major) != (item.name, item.major):
            continue
        for field in profile.capabilities:
            # A list of models differs by scope: in that of one model it may name that one only.
            listed = field.path.endswith(".models")
            if not listed and field.path.partition(".")[0] not in ("model", "engine"):
                yield field


def _less(field: Capability, promised: Value, given: Value) -> bool:
    if given is None:
        given = field.fallback if field.default is None else field.default
    if isinstance(promised, bool):
        return promised and given is not True
    if isinstance(promised, tuple):
        return not set(promised) <= set(given if isinstance(given, tuple) else ())
    if not isinstance(promised, int) or not _more_is_more(field):
        return False
    return not isinstance(given, int) or _amount(field, promised) > _amount(field, given)


def _more_is_more(field: Capability) -> bool:
    return field.path in PROMISES or field.path.rpartition(".")[2].startswith("max_")


def _amount(field: Capability, number: int) -> float:
    return float("inf") if number == 0 and field.zero is Zero.UNLIMITED else number


@check(
    "OE-CORE-CAP-011",
    advice="Fill Capabilities.generation and ModelInfo.generation from one object.",
)
def generation_agrees(probe: Probe, _: Case) -> None:
    """Capabilities.generation of a model is the message that ModelInfo carries."""
    models = supported_models(probe.declared)
    if not models:
        probe.skip("supported_models is empty")
    reads = at_one_revision(probe, lambda: [_scope_and_info(probe, each) for each in models])
    for name, scope, info in reads:
        if scope.message.generation != info.generation:
            wanted = f"generation of {name!r} as in its ModelInfo"
            probe.fail(wanted, "another message", scope.call)


def _scope_and_info(probe: Probe, name: str) -> tuple[str, Read[v1.Capabilities], v1.ModelInfo]:
    request = v1.GetModelInfoRequest(model=name)
    info = read(probe, "OpenEngineDiscovery/GetModelInfo", request, v1.ModelInfo)
    return name, capabilities(probe, name), info.message


@check(
    "OE-CORE-CAP-017",
    advice="Keep instance_id, configuration_epoch and capability_revision in one place that every "
    "answer reads.",
)
def identities_agree(probe: Probe, _: Case) -> None:
    """Capabilities, EngineInfo and WatchLoad name the same instance, epoch and revision."""
    scope, others = at_one_revision(probe, lambda: (capabilities(probe), _others(probe)))
    expected = identity(scope.message)
    for where, found, call in others:
        if found != expected:
            wanted = f"instance, epoch and revision in {where} as in Capabilities"
            probe.fail(wanted, f"{_named(found, expected)}", call)


Found = tuple[str, tuple[str, int, int], Transcript]


def _others(probe: Probe) -> list[Found]:
    """What other answers say: their name, the identity in them, and the call."""
    request = v1.GetEngineInfoRequest()
    info = read(probe, "OpenEngineDiscovery/GetEngineInfo", request, v1.EngineInfo)
    found: list[Found] = [("EngineInfo", identity(info.message), info.call)]
    if "scheduling_load" in probe.declared.profiles:
        watch = probe.start("OpenEngineObservability/WatchLoad", v1.WatchLoadRequest())
        watch.wait_event(1, timeout=probe.pace.unary_limit())
        watch.cancel()
        call = probe.finish(watch)
        found += [
            ("WatchLoad", identity(message), call)
            for message in call.messages
            if isinstance(message, v1.WatchLoadResponse)
        ]
    return found


def _named(found: tuple[str, int, int], expected: tuple[str, int, int]) -> str:
    if found[0] != expected[0]:
        return "another instance"
    return f"epoch {found[1]} and revision {found[2]} for {expected[1]} and {expected[2]}"
