"""KV event sources and streams as a sidecar's router reads them (needs 17 and 34)."""

from __future__ import annotations

from conformance.checks.client_dynamo.kv_rules import source_breach, stream_breach
from conformance.checks.client_dynamo.need import (
    PROMPT_TOKENS,
    need,
    ranks,
    server_info,
    sidecar_request,
)
from conformance.checks.core.discovery_calls import Read, read
from conformance.checks.probe import Probe
from conformance.model.case import Case
from oe_wire import v1

# Prompts that fill at least one block of any usual size are sent until events arrive.
ROUNDS = 3
BLOCKS_TOKENS = 96
BATCHES = 3
WAIT_SECONDS = 2.0


def _sources(probe: Probe) -> Read[v1.GetKvEventSourcesResponse]:
    """The sources; the case is skipped where there are none, which turns KV events off."""
    request = v1.GetKvEventSourcesRequest()
    found = read(probe, "Control/GetKvEventSources", request, v1.GetKvEventSourcesResponse)
    if not found.message.sources:
        probe.skip("the engine has no KV event source")
    return found


@need(
    17,
    advice="List one source for each data-parallel rank, with a host that other machines can "
    "connect to.",
)
def sources_can_be_used(probe: Probe, _: Case) -> None:
    """Every rank has one source that a router can connect to."""
    expected = ranks(server_info(probe).message)
    found = _sources(probe)
    breach = source_breach(found.message.sources, expected)
    if breach is not None:
        probe.fail(*breach, found.call)


@need(
    34,
    advice="Number the batches of each subscription one by one, and encode block hashes as "
    "canonical decimal int64 text.",
)
def stream_can_be_followed(probe: Probe, _: Case) -> None:
    """A subscription brings batches without gap, of the right rank and shape."""
    found = _sources(probe)
    by_grpc = [s for s in found.message.sources if s.transport == "grpc"]
    if not by_grpc:
        probe.skip("no KV event source over gRPC")
    rank = by_grpc[0].data_parallel_rank
    live = probe.start(
        "Control/SubscribeKvEvents",
        v1.SubscribeKvEventsRequest(data_parallel_ranks=[rank]),
        deadline=probe.pace.generate_limit(ROUNDS * BLOCKS_TOKENS),
    )
    for number in range(ROUNDS):
        request = sidecar_request(probe.declared)
        tokens = list(request.token_ids.ids)
        # Another first token each time, so that no round is served from the cache.
        repeated = [tokens[number % PROMPT_TOKENS], *tokens * (BLOCKS_TOKENS // PROMPT_TOKENS)]
        request.token_ids.ids[:] = repeated
        probe.generate(Case(request))
        if live.wait_event(BATCHES, timeout=WAIT_SECONDS):
            break
    live.cancel()
    call = probe.finish(live)
    if not call.messages:
        probe.skip("no KV event arrived")
    breach = stream_breach(call.messages, rank)
    if breach is not None:
        expected, actual, event = breach
        probe.fail(expected, actual, call, event)
