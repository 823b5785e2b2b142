"""GetCapabilities: which profiles it names, and that the rest of it agrees with them."""

from __future__ import annotations

import json
import re
from typing import Any

from google.protobuf import json_format

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import capabilities
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.model.registry import default_registry
from oe_wire import v1

_SEGMENT = "[a-z][a-z0-9_]*"
STANDARD_NAME = re.compile(_SEGMENT)
VENDOR_NAME = re.compile(rf"{_SEGMENT}(\.{_SEGMENT})+")
# The submessage that carries a profile's details, by profile. A profile without one is absent.
SUBMESSAGES = {
    "core": "core",
    "scheduling_load": "observability.load",
    "runtime_events": "observability.runtime_events",
    "kv_handoff": "kv.handoff",
    "kv_events": "kv.events",
    "adapters": "adapters",
    "admin": "admin",
    "tasks": "tasks",
    "encoder": "encoder",
    "sessions": "sessions",
    "orchestration": "orchestration",
}
NOTICE_PROFILES = {
    v1.CAPABILITY_CHANGE_NOTICE_LOAD_STREAM: "scheduling_load",
    v1.CAPABILITY_CHANGE_NOTICE_RUNTIME_EVENT: "runtime_events",
}
READS = 20


def _names(scope: v1.Capabilities) -> set[str]:
    return {profile.name for profile in scope.profiles}


@check("OE-CORE-CAP-001", advice="Always list the profile core, with major 1.")
def core_listed(probe: Probe, _: Case) -> None:
    """There is an entry core of major 1 or more."""
    scope = capabilities(probe)
    if not any(item.name == "core" and item.major >= 1 for item in scope.message.profiles):
        listed = [f"{item.name} {item.major}" for item in scope.message.profiles]
        probe.fail("an entry core with major of at least 1", f"the entries {listed}", scope.call)


@check(
    "OE-CORE-CAP-002",
    advice="Name standard profiles as the registry does, and your own ones by a reversed domain "
    "name, such as com.example.fast_path.",
)
def profile_names(probe: Probe, _: Case) -> None:
    """Every profile has a standard name of the registry, or a dotted vendor name."""
    scope = capabilities(probe)
    standard = default_registry().profile_names
    for name in (item.name for item in scope.message.profiles):
        if VENDOR_NAME.fullmatch(name) is None and STANDARD_NAME.fullmatch(name) is None:
            probe.fail("a canonical profile name", repr(name), scope.call)
        if "." not in name and name not in standard:
            probe.fail("a standard profile name or a dotted one", repr(name), scope.call)


@check("OE-CORE-CAP-003", advice="Advertise released majors only; drafts go under a vendor name.")
def profile_majors(probe: Probe, _: Case) -> None:
    """Every profile has a major of at least 1."""
    scope = capabilities(probe)
    for item in scope.message.profiles:
        if item.major < 1:
            probe.fail(f"a major of at least 1 for {item.name!r}", "0", scope.call)


@check("OE-CORE-CAP-004", advice="Make one entry for each major of a profile.")
def profiles_distinct(probe: Probe, _: Case) -> None:
    """No two entries share name and major."""
    scope = capabilities(probe)
    pairs = [(item.name, item.major) for item in scope.message.profiles]
    for name, major in pairs:
        if pairs.count((name, major)) > 1:
            probe.fail(f"one entry for {name} {major}", f"{pairs.count((name, major))}", scope.call)


@check("OE-CORE-CAP-005", advice="Fill a submessage only where its profile is advertised.")
def submessages_backed(probe: Probe, _: Case) -> None:
    """A capability submessage is there only when its profile is advertised."""
    scope = capabilities(probe)
    for profile, path in SUBMESSAGES.items():
        if profile == "core":
            continue  # always advertised, which CAP-001 judges
        if profile not in _names(scope.message) and _present(scope.message, path):
            probe.fail(f"no {path} without the profile {profile}", "it is present", scope.call)


@check("OE-CORE-CAP-006", advice="Fill the submessage of each advertised profile, even if empty.")
def submessages_present(probe: Probe, _: Case) -> None:
    """An advertised profile has its capability submessage."""
    scope = capabilities(probe)
    for profile, path in SUBMESSAGES.items():
        if profile in _names(scope.message) and not _present(scope.message, path):
            probe.fail(f"{path} for the profile {profile}", "it is absent", scope.call)


def _present(scope: v1.Capabilities, path: str) -> bool:
    message: Any = scope
    for part in path.split("."):
        if not message.HasField(part):
            return False
        message = getattr(message, part)
    return True


@check(
    "OE-CORE-CAP-012",
    advice="Start configuration_epoch and capability_revision at 1 for each instance.",
)
def revisions_set(probe: Probe, _: Case) -> None:
    """configuration_epoch and capability_revision are at least 1."""
    scope = capabilities(probe)
    for name in ("configuration_epoch", "capability_revision"):
        if getattr(scope.message, name) < 1:
            probe.fail(f"{name} of at least 1", "0", scope.call)


@check(
    "OE-CORE-CAP-013",
    advice="Build Capabilities once for each (epoch, revision); what changes from call to call "
    "does not belong in it.",
)
def capabilities_stable(probe: Probe, _: Case) -> None:
    """Answers of one instance, epoch and revision are equal, lists taken as sets."""
    seen: dict[tuple[str, int, int], str] = {}
    for scope in [capabilities(probe) for _read in range(READS)]:
        found = content(scope.message)
        if seen.setdefault(identity(scope.message), found) != found:
            probe.fail("the content read before at this revision", "another content", scope.call)


def identity(
    message: v1.Capabilities | v1.EngineInfo | v1.WatchLoadResponse,
) -> tuple[str, int, int]:
    """What names one content: instance, epoch and revision."""
    return message.instance_id, message.configuration_epoch, message.capability_revision


def content(scope: v1.Capabilities) -> str:
    """The message as text in which the order of lists does not show."""
    as_dict = json_format.MessageToDict(scope, preserving_proto_field_name=True)
    return json.dumps(_unordered(as_dict), sort_keys=True)


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        items = {json.dumps(_unordered(item), sort_keys=True) for item in value}
        return sorted(items)
    return value


@check(
    "OE-CORE-CAP-015",
    advice="List RECONNECT at least, and a stream's notice only with the profile of that stream.",
)
def change_notices(probe: Probe, _: Case) -> None:
    """change_notices is not empty and names only streams of advertised profiles."""
    scope = capabilities(probe)
    notices = list(scope.message.change_notices)
    if not notices:
        probe.fail("an entry in change_notices", "an empty list", scope.call)
    for notice, profile in NOTICE_PROFILES.items():
        if notice in notices and profile not in _names(scope.message):
            name = v1.CapabilityChangeNotice.Name(notice)
            probe.fail(f"no {name} without the profile {profile}", "it is listed", scope.call)
