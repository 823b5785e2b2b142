"""What a sidecar reads of health, limits and load (needs 10 to 16)."""

from __future__ import annotations

from conformance.checks.client_dynamo.need import (
    load_info,
    model_info,
    need,
    ranks,
    server_info,
)
from conformance.checks.core.discovery_calls import read
from conformance.checks.probe import Probe
from conformance.model.case import Case
from oe_wire import v1


@need(
    10,
    advice="Answer READY while the engine serves, and without a model: the sidecar names none and "
    "treats DEGRADED as a failure.",
)
def ready(probe: Probe, _: Case) -> None:
    """Control.Health says READY."""
    health = read(probe, "Control/Health", v1.HealthRequest(), v1.HealthResponse)
    if health.message.state != v1.HEALTH_STATE_READY:
        value = v1.HealthState.DESCRIPTOR.values_by_number.get(health.message.state)
        actual = str(health.message.state) if value is None else value.name
        probe.fail("READY", actual.removeprefix("HEALTH_STATE_"), health.call)


@need(11, advice="Report max_context_length: the sidecar sends max_tokens that it derives from it.")
def context_length(probe: Probe, _: Case) -> None:
    """max_context_length is reported."""
    info = model_info(probe)
    if not info.message.max_context_length:
        probe.fail("max_context_length above 0", "absent or 0", info.call)


@need(12, advice="Report max_num_sequences, 1 where an engine makes one output only.")
def sequences_limit(probe: Probe, _: Case) -> None:
    """max_num_sequences is reported."""
    info = model_info(probe)
    if not info.message.generation.HasField("max_num_sequences"):
        probe.fail("generation.max_num_sequences", "absent", info.call)


@need(13, advice="Report supports_stop_in_output, true or false.")
def stop_in_output(probe: Probe, _: Case) -> None:
    """supports_stop_in_output is reported."""
    info = model_info(probe)
    if not info.message.generation.HasField("supports_stop_in_output"):
        probe.fail("generation.supports_stop_in_output", "absent", info.call)


@need(14, advice="Report running_requests in every LoadInfo, 0 when the engine is idle.")
def running_requests(probe: Probe, _: Case) -> None:
    """GetLoad counts the running requests."""
    load = load_info(probe)
    if not load.message.HasField("running_requests"):
        probe.fail("running_requests", "absent", load.call)


@need(15, advice="Report both counts of KV blocks.")
def kv_blocks(probe: Probe, _: Case) -> None:
    """GetLoad reports how much of the KV cache is in use."""
    load = load_info(probe)
    for name in ("used_kv_blocks", "total_kv_blocks"):
        if not load.message.HasField(name):
            probe.fail(name, "absent", load.call)
    used, total = load.message.used_kv_blocks, load.message.total_kv_blocks
    if not 0 <= used <= total or not total:
        probe.fail("used_kv_blocks at most total_kv_blocks, above 0", f"{used}, {total}", load.call)


@need(16, advice="List every rank once when include_per_rank is true.")
def load_of_each_rank(probe: Probe, _: Case) -> None:
    """Each data-parallel rank has its load."""
    expected = list(ranks(server_info(probe).message))
    load = load_info(probe, per_rank=True)
    found = [rank.data_parallel_rank for rank in load.message.ranks]
    if sorted(found) != expected:
        probe.fail(f"the ranks {expected}", f"the ranks {sorted(found)}", load.call)
