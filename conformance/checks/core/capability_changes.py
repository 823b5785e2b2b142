"""What changes Capabilities, what does not, and how a change is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import pairwise

from conformance.checks.check import check
from conformance.checks.core.capabilities import content, identity
from conformance.checks.core.discovery_calls import Read, capabilities
from conformance.checks.probe import Probe
from conformance.checks.steering import busy, paused, reconfigured
from conformance.model.case import Case
from conformance.wire.declared import Declared
from oe_wire import v1


def _pair(scope: v1.Capabilities) -> tuple[int, int]:
    return scope.configuration_epoch, scope.capability_revision


@check(
    "OE-CORE-CAP-014",
    advice="Count capability_revision up with every change of what is legal, or the epoch with a "
    "new configuration, and never start over within one instance.",
)
def changes_counted(probe: Probe, _: Case) -> None:
    """A changed content has a greater (epoch, revision), and the pair never falls."""
    reads = [capabilities(probe, probe.declared.model_name)]
    with reconfigured(probe):
        reads.append(capabilities(probe, probe.declared.model_name))
    reads.append(capabilities(probe, probe.declared.model_name))
    changed = 0
    for before, after in pairwise(reads):
        if before.message.instance_id != after.message.instance_id:
            probe.skip("the engine was restarted meanwhile")
        old, new = _pair(before.message), _pair(after.message)
        if new < old:
            probe.fail(f"a pair of at least {old}", f"{new}", after.call)
        if _told(before.message) != _told(after.message):
            changed += 1
            if new == old:
                probe.fail(f"a pair above {old} with another content", f"{new}", after.call)
    if not changed:
        probe.skip("the content did not change")


def _told(scope: v1.Capabilities) -> str:
    """The content without what names it."""
    bare = v1.Capabilities()
    bare.CopyFrom(scope)
    for name in ("instance_id", "configuration_epoch", "capability_revision"):
        bare.ClearField(name)
    return content(bare)


def _states(declared: Declared) -> Iterable[Case]:
    states = ("paused", "busy") if "admin" in declared.profiles else ("busy",)
    return [Case(params={"state": state}) for state in states]


@check(
    "OE-CORE-CAP-018",
    table=_states,
    advice="Keep Capabilities apart from the state of the scheduler: what a paused or busy engine "
    "promises is what it promises when it runs.",
)
def states_leave_capabilities(probe: Probe, case: Case) -> None:
    """Capabilities and its pair are the same before, during and after a pause or load."""
    during: AbstractContextManager[object]
    during = paused(probe) if case.params["state"] == "paused" else busy(probe)
    before = capabilities(probe)
    with during:
        _same(probe, before, capabilities(probe), f"while the engine is {case.params['state']}")
    _same(probe, before, capabilities(probe), f"after it was {case.params['state']}")


def _same(
    probe: Probe, before: Read[v1.Capabilities], now: Read[v1.Capabilities], when: str
) -> None:
    if identity(now.message) != identity(before.message):
        probe.fail(f"the same epoch and revision {when}", f"{_pair(now.message)}", now.call)
    if content(now.message) != content(before.message):
        probe.fail(f"the same Capabilities {when}", "another content", now.call)


@check(
    "OE-CORE-CAP-024",
    advice="Take queue depth, free blocks and health out of Capabilities; GetLoad and Health tell "
    "them.",
)
def load_leaves_capabilities(probe: Probe, _: Case) -> None:
    """Capabilities of the engine and the model do not show that a request runs."""
    names = dict.fromkeys(("", probe.declared.model_name))
    before = [capabilities(probe, name) for name in names]
    with busy(probe) as live:
        during = [capabilities(probe, name) for name in names]
        if live.done:
            probe.skip("the request ended before Capabilities were read")
    for idle, loaded in zip(before, during, strict=True):
        if identity(idle.message) != identity(loaded.message):
            probe.skip("the configuration changed meanwhile")
        if content(idle.message) != content(loaded.message):
            probe.fail("the same Capabilities under load", "another content", loaded.call)
