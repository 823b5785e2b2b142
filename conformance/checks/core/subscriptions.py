"""Cancelling a subscription only unsubscribes (CANCEL-005)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import INFERENCE, WATCH
from conformance.checks.core.normal_end import ended_by_itself
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.strategies.simple import PROSE, ever_longer
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import health, v1

# Tokens of the request that runs while the subscription is cancelled, more where it ended too soon
# after that, and after how many of its messages it happens.
TOKENS = 24
CANCEL_AFTER = 2
# Seconds after which a cancellation has surely reached the engine and had its effect.
NOTICE_SECONDS = 0.1


def subscriptions(declared: Declared) -> Mapping[str, Message]:
    """A request for each subscription that the engine advertises, by full RPC name."""
    found: dict[str, Message] = {WATCH: health.HealthCheckRequest(service=INFERENCE)}
    if "scheduling_load" in declared.profiles:
        found["openengine.v1.OpenEngineObservability/WatchLoad"] = v1.WatchLoadRequest()
    if "kv_events" in declared.profiles:
        found["openengine.v1.OpenEngineKv/SubscribeKvEvents"] = v1.SubscribeKvEventsRequest()
    if "runtime_events" in declared.profiles:
        method = "openengine.v1.OpenEngineObservability/SubscribeRuntimeEvents"
        found[method] = v1.SubscribeRuntimeEventsRequest()
    return found


def _table(declared: Declared) -> Iterable[Case]:
    request = simple_request(declared, prompt=PROSE, max_tokens=TOKENS, temperature=0.0)
    request.stopping.ignore_eos = True
    for method in subscriptions(declared):
        yield Case(request, params={"method": method})


@check(
    "OE-CORE-CANCEL-005",
    advice="On cancellation of a subscription remove that subscriber and nothing else.",
    table=_table,
)
def only_unsubscribes(probe: Probe, case: Case) -> None:
    """A cancelled subscription ends neither a generation nor another subscription."""
    method = case.params["method"]
    subscription = subscriptions(probe.declared).get(method)
    if subscription is None:
        probe.skip("the engine does not advertise this subscription")
    for longer in ever_longer(probe.declared, case):
        run = _run(probe, longer, method, subscription)
        if not run.kept.events and run.ended:
            probe.skip(f"the engine refuses the subscription: {describe(run.kept)}")
        if run.stream.rejected:
            probe.skip(f"the engine refuses the request: {describe(run.stream)}")
        ended_by_itself(probe, run.stream, "the generation")
        if run.ended:
            probe.fail("the other subscription to go on", describe(run.kept), run.kept)
        if run.outlasted:
            return


@dataclass(frozen=True, slots=True)
class Run:
    """A generation and a subscription beside one that was cancelled. outlasted: whether the
    generation went on for long enough to see what that does. ended: whether the other subscription
    was over before it was closed.
    """

    stream: Transcript
    kept: Transcript
    outlasted: bool
    ended: bool


def _run(probe: Probe, case: Case, method: str, subscription: Message) -> Run:
    cancelled, other = probe.start(method, subscription), probe.start(method, subscription)
    limit = probe.pace.unary_limit()
    # A subscription may have nothing to say for now; a refused one has ended.
    for live in (cancelled, other):
        live.wait_event(1, timeout=limit)
    generation = probe.start_generate(case)
    generation.wait_event(CANCEL_AFTER)
    at = generation.elapsed
    cancelled.cancel()
    probe.finish(cancelled)
    stream = probe.finish(generation)
    ended = other.wait_end(0.0)
    other.cancel()
    last = max((event.seconds for event in stream.events), default=0.0)
    return Run(stream, probe.finish(other), last - at >= NOTICE_SECONDS, ended)
