"""GetLoad and WatchLoad of a real server."""

import itertools
import threading
from contextlib import contextmanager

import grpc
import pytest

from oe_wire import v1
from reference_engine.engine.config import EngineConfig
from reference_engine.server import watch_load
from reference_engine.server.app import ServeOptions
from reference_engine.server.listen import Address
from tests.reference_engine.server.running import (
    LIMIT,
    WINDOW,
    Client,
    GatedModel,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

OBSERVABILITY = "openengine.v1.OpenEngineObservability"
WATCH = f"{OBSERVABILITY}/WatchLoad"
CONFIG = EngineConfig(num_blocks=2 * WINDOW // 16, max_running=16, max_waiting=16)


@contextmanager
def watching(engine, **wishes):
    """An open stream as an iterator; cancelled afterwards."""
    call = engine.start(WATCH, v1.WatchLoadRequest(**wishes))
    try:
        yield call
    finally:
        call.cancel()


def until(stream, condition):
    """Read up to and with the first response for which the condition holds."""
    seen = []
    for response in stream:
        seen.append(response)
        if condition(response):
            return seen
    raise AssertionError(f"the stream ended after {seen}")


def runs(count):
    return lambda response: (
        response.HasField("snapshot") and response.snapshot.load.running_requests == count
    )


def on_loop(engine, function):
    """Call something on the server's thread and wait for it."""
    done = threading.Event()

    def call():
        function()
        done.set()

    engine.loop.call_soon_threadsafe(call)
    assert done.wait(LIMIT)


def num_watchers(engine):
    return engine.app._watch.num_open


@pytest.mark.parametrize("service", [OBSERVABILITY, "openengine.v1.Control"])
def test_get_load(engine, service):
    """Both names give every reported field, and ranks only when they are asked for."""
    plain = engine.call(f"{service}/GetLoad", v1.GetLoadRequest()).message
    capabilities = engine.call(
        "openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()
    ).message
    assert plain.instance_id == capabilities.instance_id
    for field in capabilities.observability.load.reported_fields:
        assert plain.HasField(field)
    assert not plain.ranks
    request = v1.GetLoadRequest(include_per_rank=True)
    ranks = engine.call(f"{service}/GetLoad", request).message.ranks
    assert [rank.data_parallel_rank for rank in ranks] == [0]
    assert ranks[0].HasField("data_parallel_rank")


def test_settings_come_first_and_the_load_with_them(engine):
    """They are 1 and 2, both with the identity and the pair of the engine."""
    with watching(engine, min_interval_ms=0, include_per_rank=True) as stream:
        settings, first = next(stream), next(stream)
    assert settings.WhichOneof("event") == "settings"
    assert settings.settings.effective_min_interval_ms == 10
    assert list(settings.settings.data_parallel_ranks) == [0]
    assert first.snapshot.initial
    assert [rank.data_parallel_rank for rank in first.snapshot.load.ranks] == [0]
    deployment = engine.app.frontend.deployment
    for number, response in enumerate((settings, first), start=1):
        assert response.sequence_number == number
        assert response.instance_id == deployment.instance_id
        assert (response.configuration_epoch, response.capability_revision) == (1, 1)
        assert not response.coalesced_events
    assert first.snapshot.load.timestamp_unix_nanos <= first.timestamp_unix_nanos


def test_a_request_is_seen_and_its_end_too(engine):
    """Both by a stream that had no initial snapshot; every number and time goes up."""
    with watching(engine, min_interval_ms=0, initial_snapshot=False) as stream:
        seen = [next(stream)]
        call = engine.start_generate(long_request())
        next(call)
        seen += until(stream, runs(1))
        call.cancel()
        seen += until(stream, runs(0))
    snapshots = [response for response in seen if response.HasField("snapshot")]
    assert not any(response.snapshot.initial for response in snapshots)
    numbers = [response.sequence_number for response in seen]
    assert numbers == sorted(set(numbers))
    for before, after in itertools.pairwise(seen):
        gap = after.sequence_number - before.sequence_number
        assert after.coalesced_events == gap - 1
        assert after.timestamp_unix_nanos >= before.timestamp_unix_nanos
    for before, after in itertools.pairwise(snapshots):
        assert after.timestamp_unix_nanos - before.timestamp_unix_nanos >= 10_000_000


def test_heartbeats_only_while_nothing_changes(engine):
    """They name the snapshot that still holds."""
    assert eventually(lambda: engine.app.frontend.engine.num_open == 0)
    with watching(engine, heartbeat_interval_ms=1) as stream:
        seen = [next(stream) for _ in range(5)]
    assert [one.WhichOneof("event") for one in seen[2:]] == ["heartbeat"] * 3
    assert {one.heartbeat.last_snapshot_sequence_number for one in seen[2:]} == {2}
    with watching(engine, heartbeat_interval_ms=1, initial_snapshot=False) as stream:
        _, beat = next(stream), next(stream)
    assert beat.HasField("heartbeat")
    assert beat.heartbeat.last_snapshot_sequence_number == 0


@pytest.mark.parametrize(
    "wishes",
    [
        {"data_parallel_ranks": [0]},
        {"include_per_rank": False, "data_parallel_ranks": [0]},
        {"include_per_rank": True, "data_parallel_ranks": [1]},
    ],
)
def test_a_bad_choice_of_ranks_is_refused(engine, wishes):
    """INVALID_ARGUMENT, before any message."""
    outcome = engine.call(WATCH, v1.WatchLoadRequest(**wishes))
    assert outcome.code is grpc.StatusCode.INVALID_ARGUMENT
    assert not outcome.messages


def test_too_many_streams():
    """One above the limit is refused; the others go on, and a place is free once one has gone."""
    options = ServeOptions(Address("127.0.0.1", 0), max_watch_streams=4)
    with serving(fake_model(), CONFIG, options) as engine:
        open_streams = [engine.start(WATCH, v1.WatchLoadRequest()) for _ in range(4)]
        for stream in open_streams:
            next(stream)
        outcome = engine.call(WATCH, v1.WatchLoadRequest())
        assert outcome.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_OVERLOADED"
        open_streams.pop().cancel()
        assert eventually(lambda: num_watchers(engine) == 3)
        with watching(engine) as stream:
            assert next(stream).HasField("settings")
        for stream in open_streams:
            assert next(stream).HasField("snapshot")
            stream.cancel()
        assert eventually(lambda: num_watchers(engine) == 0)


def test_watchers_take_turns(monkeypatch):
    """With more streams than turns, every one of them still sees a change."""
    monkeypatch.setattr(watch_load, "BURST", 1)
    with serving(fake_model(), CONFIG) as engine:
        streams = [engine.start(WATCH, v1.WatchLoadRequest()) for _ in range(20)]
        for stream in streams:
            next(stream)
        call = engine.start_generate(long_request())
        for stream in streams:
            until(stream, runs(1))
        call.cancel()
        for stream in streams:
            stream.cancel()


def test_a_change_of_the_capabilities_is_told():
    """A snapshot with the new revision comes although the load is the same."""
    with serving(fake_model(), CONFIG) as engine, watching(engine) as stream:
        first = [next(stream), next(stream)]
        revisions = engine.app.frontend.revisions
        limits = revisions.current.limits
        changed = type(limits)(max_num_sequences=limits.max_num_sequences - 1)
        on_loop(engine, lambda: revisions.change(changed))
        response = next(stream)
        assert [one.capability_revision for one in first] == [1, 1]
        assert response.HasField("snapshot")
        assert response.capability_revision == 2


def test_a_fault_of_the_source():
    """Every open stream ends with one error and OK; with none open, the next one does."""
    kind = v1.FAULT_KIND_EVENT_SOURCE_FAILS
    with serving(fake_model(), CONFIG) as engine:
        streams = [engine.start(WATCH, v1.WatchLoadRequest()) for _ in range(2)]
        for stream in streams:
            next(stream)
        on_loop(engine, lambda: engine.app.frontend.faults.arm(kind))
        for stream in streams:
            outcome = finish(stream)
            assert outcome.code is grpc.StatusCode.OK
            assert outcome.messages[-1].error.code == v1.ERROR_CODE_INTERNAL
            assert sum(one.HasField("error") for one in outcome.messages) == 1
        assert eventually(lambda: num_watchers(engine) == 0)
        with watching(engine) as stream:
            assert [next(stream).WhichOneof("event") for _ in range(2)] == ["settings", "snapshot"]
            on_loop(engine, engine.app.frontend.faults.clear)
        assert eventually(lambda: num_watchers(engine) == 0)
        on_loop(engine, lambda: engine.app.frontend.faults.arm(kind))
        outcome = finish(engine.start(WATCH, v1.WatchLoadRequest()))
        kinds = [one.WhichOneof("event") for one in outcome.messages]
        assert kinds == ["settings", "snapshot", "error"]


def test_shutdown():
    """Streams last through the drain, then end as UNAVAILABLE."""
    model = GatedModel()
    model.gate.set()
    with serving(fake_model(model), CONFIG) as engine:
        call = engine.start_generate(long_request())
        next(call)
        with watching(engine, min_interval_ms=0) as stream:
            until(stream, runs(1))
            model.gate.clear()
            stopping = engine.stop(grace=LIMIT)
            assert eventually(lambda: engine.app.frontend.draining)
            late = engine.call(f"{OBSERVABILITY}/GetLoad", v1.GetLoadRequest()).message
            assert late.running_requests == 1
            with watching(engine) as other:
                next(other)
                model.gate.set()
                call.cancel()
                ends = [finish(stream), finish(other)]
            stopping.result(LIMIT)
        for outcome in ends:
            assert outcome.code is grpc.StatusCode.UNAVAILABLE
            assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_OVERLOADED"


def test_a_reader_that_does_not_read():
    """Its write waits; others see every change, requests run, and it then gets the newest load."""
    narrow = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 512)]
    with serving(fake_model(), CONFIG) as engine:
        slow = Client(engine.app.address, narrow)
        stalled = slow.start(WATCH, v1.WatchLoadRequest(min_interval_ms=0))
        until(stalled, runs(0))
        (watcher,) = engine.app._watch._open
        with watching(engine, min_interval_ms=0) as stream:
            next(stream)
            call = engine.start_generate(long_request())
            until(stream, runs(1))
            produced = watcher._slot._produced
            assert eventually(lambda: watcher._slot._produced > produced + 50)
            call.cancel()
            until(stream, runs(0))
            assert engine.generate(generate_request()).code is grpc.StatusCode.OK
        seen = until(stalled, runs(0))
        assert sum(response.coalesced_events for response in seen) > 0
        assert len(seen) < 50
        stalled.cancel()
        slow.channel.close()
        assert eventually(lambda: num_watchers(engine) == 0)
