"""Checks of profile files that a schema cannot express: against each other and the wire."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.errors import ConfigError, unknown_name
from conformance.model.descriptors import (
    is_repeated,
    message_descriptor,
    methods_of,
    resolve,
    type_name,
)
from conformance.model.facts import ROOTS
from conformance.model.profile import Capability, Profile, Service


def check_profiles(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Check versions, ids and prerequisites across files; returns prerequisites first."""
    _check_versions(profiles)
    _check_ids(profiles)
    for profile in profiles:
        _check_prerequisites(profile, profiles)
    return _ordered(profiles)


def check_profile(profile: Profile, features: frozenset[str]) -> None:
    """Check one profile against the descriptors and the feature tokens of all profiles."""
    for service in profile.services:
        _check_service(profile, service)
    for name in profile.health_services:
        if name and not methods_of(name):
            raise _error(profile, "health_services", f"unknown service {name!r}", "a service name")
    for name in profile.messages:
        _placed(profile, "messages", name)
    if profile.capability:
        _check_submessage(profile)
    paths = [capability.path for capability in profile.capabilities]
    for path in paths:
        if paths.count(path) > 1:
            raise _error(profile, f"capability {path}", "is given twice", "each field once")
    for capability in profile.capabilities:
        _check_capability(profile, capability)
    used = [token for tokens in profile.incompatible for token in tokens]
    used += [token for capability in profile.capabilities for token in capability.features]
    for token in used:
        if token not in features:
            raise unknown_name("feature token", token, features, source=profile.source)


def _error(profile: Profile, where: str, problem: str, expected: str) -> ConfigError:
    return ConfigError(problem, source=profile.source, where=where, expected=expected)


def _check_versions(profiles: Sequence[Profile]) -> None:
    seen: dict[tuple[str, int, int], str] = {}
    for profile in profiles:
        key = (profile.name, profile.major, profile.minor)
        if key in seen:
            raise _error(
                profile,
                "profile",
                f"{profile.title} is also in {seen[key]}",
                "one file per version",
            )
        seen[key] = profile.source


def _check_ids(profiles: Sequence[Profile]) -> None:
    seen: dict[str, str] = {}
    for profile in profiles:
        for row in profile.requirements:
            place = f"requirement {row.id}"
            if row.id in seen:
                raise _error(profile, place, f"id is also in {seen[row.id]}", "each id once")
            seen[row.id] = profile.source
            if row.tolerates and not row.legacy:
                raise _error(profile, f"{place}, tolerates", "row is not legacy", "legacy = true")
            if not any(row.id.startswith(f"{prefix}-") for prefix in profile.id_prefixes):
                raise _error(
                    profile,
                    place,
                    f"id does not belong to profile {profile.name}",
                    "an id that starts with " + " or ".join(profile.id_prefixes),
                )


def _check_prerequisites(profile: Profile, profiles: Sequence[Profile]) -> None:
    for need in profile.prerequisites:
        versions = [other for other in profiles if other.name == need.profile]
        if not versions:
            known = {other.name for other in profiles}
            raise unknown_name("prerequisite profile", need.profile, known, source=profile.source)
        if not any(v.major == need.major and v.minor >= need.minor for v in versions):
            raise _error(
                profile,
                "prerequisites",
                f"no file has {need.profile} {need.major}.{need.minor}",
                "one of " + ", ".join(sorted(version.title for version in versions)),
            )


def _ordered(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    waiting = sorted(profiles, key=lambda profile: (profile.name, profile.major, profile.minor))
    placed: list[Profile] = []
    while waiting:
        names = {profile.name for profile in placed}
        ready = [p for p in waiting if all(need.profile in names for need in p.prerequisites)]
        if not ready:
            circle = ", ".join(sorted({profile.name for profile in waiting}))
            raise _error(
                waiting[0],
                "prerequisites",
                f"a cycle among {circle}",
                "prerequisites without cycle",
            )
        placed += ready
        waiting = [profile for profile in waiting if profile not in ready]
    return tuple(placed)


def _check_service(profile: Profile, service: Service) -> None:
    known = methods_of(service.name)
    if not known:
        raise _error(profile, f"service {service.name}", "unknown service", "a service of the wire")
    for rpc in service.rpcs:
        if rpc.name not in known:
            place = f"{profile.source}: service {service.name}"
            raise unknown_name("RPC", rpc.name, known, source=place)
        if rpc.alias_of and rpc.alias_of.partition("/")[2] not in methods_of(
            rpc.alias_of.partition("/")[0]
        ):
            raise _error(
                profile,
                f"service {service.name}, rpc {rpc.name}, alias_of",
                f"unknown RPC {rpc.alias_of!r}",
                "service/method of the wire",
            )


def _placed(profile: Profile, where: str, message: str) -> None:
    try:
        message_descriptor(message)
    except ConfigError as error:
        raise _error(profile, where, error.problem, error.expected) from error


def _check_submessage(profile: Profile) -> None:
    try:
        field = resolve(message_descriptor("Capabilities"), profile.capability)
    except ConfigError as error:
        raise _error(profile, "capability", str(error), "a submessage of Capabilities") from error
    if field.message_type is None or is_repeated(field):
        raise _error(
            profile, "capability", f"{profile.capability} is {type_name(field)}", "a submessage"
        )


def _check_capability(profile: Profile, capability: Capability) -> None:
    root, _, path = capability.path.partition(".")
    if root not in ROOTS or root == "capabilities":
        root, path = "capabilities", capability.path
    place = f"capability {capability.path}"
    try:
        field = resolve(message_descriptor(ROOTS[root]), path)
    except ConfigError as error:
        raise _error(profile, place, str(error), f"a field of {ROOTS[root]}") from error
    actual = type_name(field)
    if actual != capability.type:
        raise _error(profile, place, f"type {capability.type!r}", f"{actual!r} as on the wire")
    if capability.default is not None and not _fits(capability, actual):
        raise _error(profile, place, f"default {capability.default!r}", f"a value of type {actual}")


def _fits(capability: Capability, actual: str) -> bool:
    default = capability.default
    if capability.repeated:
        return isinstance(default, tuple)
    if actual == "bool":
        return isinstance(default, bool)
    return isinstance(default, int) and not isinstance(default, bool)
