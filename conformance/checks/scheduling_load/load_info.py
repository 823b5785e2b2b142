"""Checks of what one LoadInfo holds, from GetLoad under both its names and from WatchLoad."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import grpc

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import WATCH, WATCH_SECONDS, close
from conformance.laws.load_info import CONTROL_GET_LOAD, GET_LOAD, loads, measured
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Fields that a router cannot do without (LOAD-005).
LEAST_REPORTED = frozenset({"running_requests", "queued_requests", "timestamp_unix_nanos"})
# Statuses of an engine that has no room or no time: nothing is learnt about the load.
BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
# Tokens of a request that keeps the engine busy while its load is read; it is cancelled then.
WORK_TOKENS = 512


def get_load_name(declared: Declared) -> str:
    """The RPC that tells the load: Control's on an engine of v0.1.0, else Observability's."""
    return GET_LOAD if "scheduling_load" in declared.profiles else CONTROL_GET_LOAD


def get_load(probe: Probe, *, per_rank: bool = False) -> Transcript:
    """Call GetLoad under the name that the engine has to serve."""
    request = v1.GetLoadRequest(include_per_rank=per_rank)
    return probe.call(get_load_name(probe.declared), request)


def load_of(probe: Probe, call: Transcript) -> v1.LoadInfo:
    """The load in an answer; whatever else is the matter of other rows, so the check skips."""
    found = next((info for _, info in loads(call)), None)
    if found is None:
        probe.skip(f"no load to judge: {describe(call)}")
    return found


def watch_briefly(probe: Probe, *, per_rank: bool = False) -> Transcript:
    """Open a load stream, read its settings and first snapshot, and cancel it."""
    request = v1.WatchLoadRequest(include_per_rank=per_rank)
    live = probe.start(WATCH, request, deadline=WATCH_SECONDS)
    live.wait_event(2, probe.pace.unary_limit())
    return close(probe, live)


def with_work(probe: Probe, action: Callable[[], object]) -> None:
    """Do something while a request is generating, where the engine generates."""
    if not probe.declared.generates:
        return
    live = probe.start_generate(Case(long_request(probe.declared, WORK_TOKENS)))
    if live.wait_event(1):
        action()
    live.cancel()
    probe.finish(live)


@check(
    "OE-LOAD-001",
    advice="Serve GetLoad and WatchLoad on OpenEngineObservability, and GetLoad on Control with "
    "the same handler.",
)
def served(probe: Probe, _: Case) -> None:
    """All three answer, and both names of GetLoad measure the same fields."""
    answers = []
    for name in (GET_LOAD, CONTROL_GET_LOAD):
        call = probe.call(name, v1.GetLoadRequest())
        if call.ending.code in BUSY:
            probe.skip(f"the load was not told: {describe(call)}")
        if not call.ending.ok:
            probe.fail(f"OK from {name}", describe(call), call)
        answers.append((load_of(probe, call), call))
    (first, _call), (alias, other) = answers
    if differing := measured(first).keys() ^ measured(alias).keys():
        names = ", ".join(sorted(differing))
        probe.fail("the same fields under both names of GetLoad", f"only one has {names}", other)
    watch = watch_briefly(probe)
    if watch.ending.code in BUSY:
        probe.skip(f"no load stream was granted: {describe(watch)}")
    if not watch.events:
        probe.fail("a load stream", describe(watch), watch)


@check(
    "OE-LOAD-002",
    advice="Fill instance_id of LoadInfo and of every WatchLoadResponse from the same place as "
    "EngineInfo.instance_id.",
)
def instance(probe: Probe, _: Case) -> None:
    """Every answer about the load comes from the instance that discovery names."""
    info = probe.call("OpenEngineDiscovery/GetEngineInfo", v1.GetEngineInfoRequest())
    engine = info.messages[0] if info.ending.ok and info.messages else None
    if not isinstance(engine, v1.EngineInfo):
        probe.skip(f"GetEngineInfo gave nothing to compare with: {describe(info)}")
    wanted = engine.instance_id
    judged = False
    for call in (get_load(probe), watch_briefly(probe)):
        for at, found in _instances(call):
            judged = True
            if found != wanted:
                probe.fail("the instance_id of EngineInfo", "another", call, at)
    if not judged:
        probe.skip("no load to judge")


def _instances(call: Transcript) -> Iterable[tuple[int, str]]:
    for at, message in enumerate(call.messages):
        if isinstance(message, v1.WatchLoadResponse):
            yield at, message.instance_id
    yield from ((at, info.instance_id) for at, info in loads(call))


@check(
    "OE-LOAD-004",
    advice="Fill every field that reported_fields names in every sample, with 0 where 0 was "
    "measured; leave others out of the list.",
)
def complete(probe: Probe, _: Case) -> None:
    """What the law says about the answers of both RPCs decides."""
    get_load(probe)
    watch_briefly(probe)
    probe.settle()


@check(
    "OE-LOAD-005",
    advice="List at least running_requests, queued_requests and timestamp_unix_nanos in "
    "reported_fields, and measure them.",
)
def enough_reported(probe: Probe, _: Case) -> None:
    """The declarations alone decide."""
    scope = probe.declared.engine_scope
    if scope is None or not scope.observability.HasField("load"):
        probe.skip("the engine advertises no limits of scheduling_load")
    missing = LEAST_REPORTED - frozenset(scope.observability.load.reported_fields)
    if missing:
        probe.fail(f"{', '.join(sorted(missing))} in reported_fields", "a list without it")


def _both_ways(_: Declared) -> Iterable[Case]:
    return [Case(params={"per_rank": per_rank}) for per_rank in (False, True)]


@check(
    "OE-LOAD-006",
    table=_both_ways,
    advice="List no ranks unless include_per_rank asks for them; then list each served rank once, "
    "ascending, with data_parallel_rank set (rank 0 too), or refuse with INVALID_ARGUMENT where "
    "supports_per_rank is false.",
)
def ranks(probe: Probe, case: Case) -> None:
    """What the law says decides; a refusal where ranks are supported breaks the row too."""
    per_rank = case.params["per_rank"]
    call = get_load(probe, per_rank=per_rank)
    scope = probe.declared.engine_scope
    supported = scope is not None and scope.observability.load.supports_per_rank
    refused = call.rejected and call.ending.code is grpc.StatusCode.INVALID_ARGUMENT
    if refused and (supported or not per_rank):
        probe.fail("a LoadInfo", describe(call), call)
    probe.settle()


@check(
    "OE-LOAD-007",
    advice="Take the totals of LoadInfo and the numbers of its ranks from one sample, and add "
    "them up.",
)
def sums(probe: Probe, _: Case) -> None:
    """What the law says about an engine at work decides."""
    get_load(probe, per_rank=True)
    with_work(probe, lambda: get_load(probe, per_rank=True))
    probe.settle()


@check(
    "OE-LOAD-008",
    advice="Count used_kv_blocks and total_kv_blocks over the same pool, all ranks together, and "
    "report the same total in DeploymentCapacity.",
)
def blocks(probe: Probe, _: Case) -> None:
    """What the law says about an engine at rest and at work decides."""
    get_load(probe)
    with_work(probe, lambda: get_load(probe))
    probe.settle()
