"""What an engine says about itself: identity, revisions, served models and parallelism."""

from __future__ import annotations

from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    INFERENCE,
    EngineFacts,
    Read,
    answer,
    call_on,
    capabilities,
    check_health,
    engine_facts,
    read,
    serving_status,
)
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.wire.connection import Connection
from oe_wire import v1

# Names that are moved to a newer commit as time passes. A release tag (v0.1.0) is not one.
MOVING_NAMES = frozenset({"main", "master", "latest", "trunk", "dev", "head", "nightly"})
READS = 5
# Tries to read both messages without a configuration change in between.
TRIES = 3


@check(
    "OE-CORE-DISC-003",
    advice="Build ServerInfo and EngineInfo from one object, so that fields 1-12 cannot differ.",
)
def both_infos_agree(probe: Probe, _: Case) -> None:
    """EngineInfo and ServerInfo of one (epoch, revision) are equal in fields 1-12."""
    for _try in range(TRIES):
        before = _pair(probe)
        engine = read(
            probe, "OpenEngineDiscovery/GetEngineInfo", v1.GetEngineInfoRequest(), v1.EngineInfo
        )
        server = read(probe, "Control/GetServerInfo", v1.GetServerInfoRequest(), v1.ServerInfo)
        if _pair(probe) == before:
            _compare(probe, engine, server)
            return
    probe.skip("the configuration changed between the calls each time")


def _pair(probe: Probe) -> tuple[str, int, int]:
    scope = capabilities(probe).message
    return scope.instance_id, scope.configuration_epoch, scope.capability_revision


def _compare(probe: Probe, engine: Read[v1.EngineInfo], server: Read[v1.ServerInfo]) -> None:
    """Parse EngineInfo as ServerInfo: what the older message does not know falls away."""
    shared = v1.ServerInfo.FromString(engine.message.SerializeToString())
    different = [
        field.name
        for field in v1.ServerInfo.DESCRIPTOR.fields
        if _field(shared, field.name) != _field(server.message, field.name)
    ]
    if different:
        probe.fail(
            "equal fields 1-12 in EngineInfo and ServerInfo",
            f"different {', '.join(different)}",
            server.call,
        )


def _field(message: Message, name: str) -> Message:
    """The message with only this field in it and no unknown ones: presence is compared too."""
    only = type(message)()
    only.CopyFrom(message)
    only.DiscardUnknownFields()
    for field in only.DESCRIPTOR.fields:
        if field.name != name:
            only.ClearField(field.name)
    return only


@check("OE-CORE-DISC-005", advice="Report the schema revision that the engine speaks, 1 today.")
def schema_revision(probe: Probe, _: Case) -> None:
    """schema_revision is at least 1."""
    facts = engine_facts(probe)
    if facts.message.schema_revision < 1:
        probe.fail("schema_revision of at least 1", "0", facts.call)


@check(
    "OE-CORE-DISC-006",
    advice="Set minimum_client_revision between 1 and schema_revision.",
)
def client_revision(probe: Probe, _: Case) -> None:
    """minimum_client_revision lies between 1 and schema_revision."""
    facts = engine_facts(probe)
    minimum, revision = facts.message.minimum_client_revision, facts.message.schema_revision
    if revision < 1:
        probe.skip("schema_revision is not set, so there is no upper bound")
    if not 1 <= minimum <= revision:
        probe.fail(f"minimum_client_revision in 1..{revision}", str(minimum), facts.call)


@check(
    "OE-CORE-DISC-007",
    advice="Report the release tag or the commit that the protos were taken from, not a branch.",
)
def schema_release(probe: Probe, _: Case) -> None:
    """schema_release names something that cannot move."""
    facts = engine_facts(probe)
    release = facts.message.schema_release.strip()
    if not release:
        probe.fail("a non-empty schema_release", "an empty one", facts.call)
    if release.removeprefix("refs/heads/").lower() in MOVING_NAMES:
        probe.fail("a tag or commit as schema_release", f"the moving name {release!r}", facts.call)


@check(
    "OE-CORE-DISC-008",
    advice="Make one instance_id when the process starts, and return that one everywhere.",
)
def instance_id(probe: Probe, _: Case) -> None:
    """instance_id is set and is the same in every answer since the run started."""
    at_start = _instance(probe.declared.engine)
    reads = [engine_facts(probe) for _read in range(READS)]
    with Connection(probe.connection.target, probe.connection.routes) as other:
        reads.append(_other_read(probe, other) or reads[-1])
    for facts in reads:
        now = facts.message.instance_id
        if not now:
            probe.fail("a non-empty instance_id", "an empty one", facts.call)
        at_start = at_start or now
        if now != at_start:
            probe.fail("the instance_id read before", "another one", facts.call)


def _instance(engine: Message | None) -> str:
    return engine.instance_id if isinstance(engine, v1.EngineInfo | v1.ServerInfo) else ""


def _other_read(probe: Probe, connection: Connection) -> Read[EngineFacts] | None:
    """The same read over a connection of its own, None when that fails."""
    if probe.declared.legacy:
        name = "openengine.v1.Control/GetServerInfo"
        call = call_on(probe, connection, name, v1.GetServerInfoRequest())
    else:
        name = "openengine.v1.OpenEngineDiscovery/GetEngineInfo"
        call = call_on(probe, connection, name, v1.GetEngineInfoRequest())
    message = answer(call, v1.EngineInfo) or answer(call, v1.ServerInfo)
    return None if message is None else Read(message, call)


@check(
    "OE-CORE-DISC-010",
    advice="List every served name once, without empty strings, as soon as inference is served.",
)
def supported_models_listed(probe: Probe, _: Case) -> None:
    """supported_models has no empty and no repeated entry, and is not empty while serving."""
    facts = engine_facts(probe)
    names = list(facts.message.supported_models)
    if "" in names:
        probe.fail("supported_models without empty entries", "an empty entry", facts.call)
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        probe.fail("supported_models without repetition", f"repeated {repeated}", facts.call)
    if not names and _serving(probe):
        probe.fail("supported_models while Inference is serving", "an empty list", facts.call)


def _serving(probe: Probe) -> bool:
    if not probe.declared.legacy:
        return serving_status(check_health(probe, INFERENCE)) == "SERVING"
    state = answer(probe.call("Control/Health", v1.HealthRequest()), v1.HealthResponse)
    return state is not None and state.state == v1.HEALTH_STATE_READY


@check(
    "OE-CORE-DISC-016",
    advice="Leave decode_context_parallel_size out when it is unknown; without such "
    "parallelism it is 1.",
)
def decode_context_parallel_size(probe: Probe, _: Case) -> None:
    """decode_context_parallel_size, when present, is at least 1."""
    facts = engine_facts(probe)
    parallelism = facts.message.parallelism
    if not parallelism.HasField("decode_context_parallel_size"):
        probe.skip("decode_context_parallel_size is not reported")
    if parallelism.decode_context_parallel_size < 1:
        probe.fail("decode_context_parallel_size of at least 1", "0", facts.call)


@check(
    "OE-CORE-DISC-017",
    advice="Report a data-parallel rank inside the range of ranks that the engine reports.",
)
def data_parallel_rank(probe: Probe, _: Case) -> None:
    """data_parallel_rank lies in [start_rank, start_rank + size)."""
    facts = engine_facts(probe)
    parallelism = facts.message.parallelism
    if not parallelism.HasField("data_parallel_rank"):
        probe.skip("data_parallel_rank is not reported")
    rank, start = parallelism.data_parallel_rank, parallelism.data_parallel_start_rank
    if not parallelism.HasField("data_parallel_size"):
        if rank >= start:
            probe.skip("data_parallel_size is not reported, so the range has no end")
        probe.fail(f"data_parallel_rank of at least {start}", str(rank), facts.call)
    end = start + parallelism.data_parallel_size
    if not start <= rank < end:
        probe.fail(f"data_parallel_rank in [{start}, {end})", str(rank), facts.call)
