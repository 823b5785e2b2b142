"""What a single GetCapabilities answer must not contradict: prerequisites, names and limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    Read,
    capabilities,
    engine_facts,
    model_infos,
    supported_models,
)
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.model.facts import read_field
from conformance.model.profile import Capability, Zero
from conformance.model.registry import default_registry
from oe_wire import v1

SERVICE_NAME = re.compile(r"([a-z][a-z0-9_]*\.)+[A-Za-z][A-Za-z0-9_]*")
# Where a limit lies: the first part of its path in the profile files, Capabilities for the rest.
_ROOTS = ("model", "engine")


@check(
    "OE-CORE-CAP-020",
    advice="Advertise every profile that an advertised one builds on, in the major that it needs "
    "and at least at that minor; list in prerequisites only what you advertise.",
)
def prerequisites_closed(probe: Probe, _: Case) -> None:
    """What the registry or the engine itself requires for a profile is advertised."""
    scope = capabilities(probe)
    offered = list(scope.message.profiles)
    for profile, name, major, minor in (
        *_standard_needs(offered),
        *_own_needs(scope.message),
    ):
        if not any(
            item.name == name and item.major == major and item.minor >= minor for item in offered
        ):
            wanted = f"{name} {major}.{minor} or a later minor, which {profile} needs"
            probe.fail(wanted, "it is not advertised", scope.call)


def _standard_needs(offered: Iterable[v1.ServiceProfile]) -> Iterator[tuple[str, str, int, int]]:
    """Profile, and name, major and minor of what the registry requires for it."""
    known = {(profile.name, profile.major): profile for profile in default_registry().profiles}
    for item in offered:
        profile = known.get((item.name, item.major))
        for need in () if profile is None else profile.prerequisites:
            yield item.name, need.profile, need.major, need.minor


def _own_needs(scope: v1.Capabilities) -> Iterator[tuple[str, str, int, int]]:
    advertised = {item.name for item in scope.profiles}
    for need in scope.prerequisites:
        if need.profile in advertised:
            yield need.profile, need.requires_profile, need.requires_major, need.requires_minor


@check(
    "OE-CORE-CAP-021",
    advice="List in ServiceProfile.models only names of supported_models, and services by their "
    "full names, such as openengine.v1.Inference.",
)
def profile_scopes_named(probe: Probe, _: Case) -> None:
    """Models of a profile are served ones; its services have full names.

    Whether those names answer Health/Check is the matter of HEALTH-002.
    """
    scope = capabilities(probe)
    served = set(engine_facts(probe).message.supported_models)
    for item in scope.message.profiles:
        unknown = [name for name in item.models if name not in served]
        if unknown:
            probe.fail(f"models of {item.name} among supported_models", f"{unknown}", scope.call)
        for name in item.services:
            if SERVICE_NAME.fullmatch(name) is None:
                probe.fail(f"full names of the services of {item.name}", repr(name), scope.call)


def _limits() -> Mapping[str, tuple[Capability, ...]]:
    """Limits for which zero has no meaning, by the message that carries them."""
    found: dict[str, list[Capability]] = {root: [] for root in ("capabilities", *_ROOTS)}
    for profile in default_registry().profiles:
        for field in profile.capabilities:
            if field.zero is Zero.INVALID and field.type in ("uint32", "uint64"):
                root = field.path.partition(".")[0]
                found[root if root in _ROOTS else "capabilities"].append(field)
    return {root: tuple(fields) for root, fields in found.items()}


@check(
    "OE-CORE-CAP-022",
    advice="Leave out a limit that is unknown or does not exist; zero is no limit.",
)
def limits_positive(probe: Probe, _: Case) -> None:
    """No limit is a present zero, except where zero has a meaning of its own."""
    limits = _limits()
    facts = engine_facts(probe)
    _positive(probe, Read(facts.message, facts.call), limits["engine"])
    for name in ("", *supported_models(probe.declared)):
        scope = capabilities(probe, name)
        _positive(probe, Read(scope.message, scope.call), limits["capabilities"])
    for info in model_infos(probe):
        _positive(probe, Read(info.message, info.call), limits["model"])


def _positive(probe: Probe, read: Read[Message], fields: Iterable[Capability]) -> None:
    for field in fields:
        root, _, rest = field.path.partition(".")
        if read_field(read.message, rest if root in _ROOTS else field.path) == 0:
            probe.fail(f"{field.path} above zero, or left out", "0", read.call)
