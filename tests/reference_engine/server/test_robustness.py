"""Readers that do not read, clients that die, and engines whose every step fails."""

import asyncio
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.engine import stream as streams
from reference_engine.engine.config import EngineConfig
from reference_engine.server.app import ServeOptions
from reference_engine.server.frontend import Frontend
from reference_engine.server.listen import Address
from reference_engine.server.stall import StallWatch
from tests.reference_engine.server.running import (
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

CONFIG = EngineConfig(num_blocks=2 * WINDOW // 16, max_running=16, max_waiting=16)
# Without probing for bandwidth the window stays at 64 KiB, 12 of the large messages.
SMALL_WINDOW = [("grpc.http2.bdp_probe", 0)]
LARGE = v1.ResponseOptions(
    return_output_logprobs=True,
    output_candidates=v1.CandidateTokenSelection(all=v1.AllCandidates()),
)


def options(stall_timeout_ms: int) -> ServeOptions:
    return ServeOptions(Address("127.0.0.1", 0), stall_timeout_ms=stall_timeout_ms)


def idle(engine) -> bool:
    frontend = engine.app.frontend
    return (
        frontend.engine.num_open == 0
        and not frontend.table.streams()
        and engine.free_blocks == engine.total_blocks
    )


def core_state(engine) -> int:
    outcome = engine.call("openengine.v1.Control/Health", v1.HealthRequest())
    return outcome.message.state


def probe_state(engine) -> int:
    request = v1.HealthRequest(include_inference_probe=True)
    return engine.call("openengine.v1.Control/Health", request).message.state


def data_plane(engine) -> int:
    return engine.call("grpc.health.v1.Health/Check", health.HealthCheckRequest()).message.status


def test_a_stalled_reader_is_aborted(monkeypatch):
    """It frees everything at once, hurts no other stream, and ends as OVERLOADED when read."""
    released = threading.Event()

    @asynccontextmanager
    async def hold():
        try:
            yield None
        finally:
            released.set()

    monkeypatch.setattr(Frontend, "adapter", lambda self, name: hold())
    with serving(fake_model(), CONFIG, options(200)) as engine:
        core = engine.call(
            "openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()
        ).message.core
        assert core.response_stall_timeout_ms == 200
        client = Client(engine.app.address, SMALL_WINDOW)
        request = long_request(response=LARGE)
        stalled = client.start_generate(request)
        other = engine.start_generate(long_request())
        next(other)
        assert eventually(lambda: engine.app.frontend.table.active(request.request_id) is None)
        assert engine.abort(request.request_id).message.status == v1.ABORT_STATUS_ALREADY_FINISHED
        assert eventually(released.is_set)
        assert next(other).HasField("token")
        other.cancel()
        assert eventually(lambda: idle(engine))
        outcome = finish(stalled)
        client.channel.close()
    assert outcome.code is grpc.StatusCode.OK
    last = outcome.messages[-1]
    assert last.error.code == v1.ERROR_CODE_OVERLOADED
    assert last.error.retryable
    assert last.usage.completion_tokens >= len(outcome.records()) > 0
    assert outcome.ends() == []


def test_a_lagging_reader_loses_nothing(monkeypatch):
    """Its request is set aside without blocks, others go on, and it gets every token in the end."""
    monkeypatch.setattr(streams, "MOST_WAITING", 2000)
    with serving(fake_model(), CONFIG, options(0)) as engine:
        request = generate_request(response=LARGE)
        request.stopping.max_tokens = 150
        request.stopping.ignore_eos = True
        client = Client(engine.app.address, SMALL_WINDOW)
        lagging = client.start_generate(request)
        # Blocks are back while the request is still open: it neither runs nor has ended.
        assert eventually(
            lambda: (
                engine.app.frontend.engine.num_open == 1
                and next(iter(engine.app.frontend.table.streams())).lagging
                and engine.free_blocks == engine.total_blocks
            )
        )
        plain = generate_request()
        plain.stopping.CopyFrom(request.stopping)
        undisturbed = engine.generate(plain)
        outcome = finish(lagging)
        client.channel.close()
        assert eventually(lambda: idle(engine))
    ids = [record.token_id for record in outcome.records()]
    assert ids == [record.token_id for record in undisturbed.records()]
    assert outcome.text() == undisturbed.text()
    assert outcome.messages[-1].usage.completion_tokens == 150


def test_abort_of_a_lagging_reader(monkeypatch):
    """A request that is set aside can be aborted; what it had produced is still delivered."""
    monkeypatch.setattr(streams, "MOST_WAITING", 2000)
    with serving(fake_model(), CONFIG, options(0)) as engine:
        request = long_request(response=LARGE)
        client = Client(engine.app.address, SMALL_WINDOW)
        lagging = client.start_generate(request)
        assert eventually(lambda: any(s.lagging for s in engine.app.frontend.table.streams()))
        assert engine.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
        outcome = finish(lagging)
        client.channel.close()
        assert [end.reason for end in outcome.ends()] == [v1.FINISH_REASON_CANCELLED]
        assert outcome.messages[-1].usage.completion_tokens == len(outcome.records())
        assert eventually(lambda: idle(engine))


def test_stall_watch():
    """A write that hangs is told once and no earlier than the timeout; others never are."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        told: list[float] = []
        watch = StallWatch(50)
        await watch.write(asyncio.sleep(0), lambda: told.append(-1.0))
        started = loop.time()
        # Four times the timeout: long enough to be told twice if that were possible.
        await watch.write(asyncio.sleep(0.2), lambda: told.append(loop.time()))
        return [at - started for at in told]

    (after,) = asyncio.run(main())
    assert after >= 0.05


def test_stall_watch_off():
    """With 0 no write is ever told."""

    async def main() -> list[int]:
        told: list[int] = []
        await StallWatch(0).write(asyncio.sleep(0.01), lambda: told.append(1))
        return told

    assert asyncio.run(main()) == []


CLIENT = """
import sys, grpc
from oe_wire import v1
from oe_wire.services import METHODS
method = METHODS["openengine.v1.Inference/Generate"]
channel = grpc.insecure_channel(sys.argv[1])
generate = channel.unary_stream(
    method.path, method.request.SerializeToString, method.response.FromString
)
calls = []
for number in range(4):
    request = v1.GenerateRequest(request_id=f"killed-{number}", model="fake", prompt="abc")
    request.stopping.ignore_eos = True
    calls.append(generate(request))
    next(calls[-1])
print("streaming", flush=True)
sys.stdin.read()
"""


def test_a_killed_client_frees_everything():
    """Streams of a process that is gone end, and their blocks and ids are free."""
    model = GatedModel()
    model.gate.set()
    with serving(fake_model(model), CONFIG) as engine:
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, engine.app.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout.readline() == b"streaming\n"
            model.gate.clear()
            assert engine.app.frontend.engine.num_open == 4
        finally:
            process.kill()
            process.communicate()
        assert eventually(lambda: not engine.app.frontend.table.streams())
        model.gate.set()
        assert eventually(lambda: idle(engine))


@pytest.mark.parametrize("seen_by", ["health request", "own probes"])
def test_an_engine_that_fails_every_step(seen_by, caplog):
    """It says NOT_SERVING and refuses work, until a probe shows that it computes again."""
    model = GatedModel()
    model.gate.set()
    with serving(fake_model(model), CONFIG) as engine:
        model.fault = RuntimeError("device lost")
        for _ in range(3):
            assert data_plane(engine) == health.HealthCheckResponse.SERVING
            outcome = engine.generate(generate_request())
            assert outcome.code is grpc.StatusCode.OK
            assert outcome.messages[-1].error.code == v1.ERROR_CODE_INTERNAL
        assert eventually(lambda: data_plane(engine) == health.HealthCheckResponse.NOT_SERVING)
        assert core_state(engine) == v1.HEALTH_STATE_NOT_READY
        assert engine.generate(generate_request()).code is grpc.StatusCode.UNAVAILABLE
        if seen_by == "own probes":
            recovery = engine.app._recovery
            recovery._seconds = 0.01
            engine.loop.call_soon_threadsafe(recovery.close)
            engine.loop.call_soon_threadsafe(recovery.watch)
        else:
            assert probe_state(engine) == v1.HEALTH_STATE_NOT_READY
        model.fault = None
        if seen_by == "health request":
            probe_state(engine)
        assert eventually(lambda: data_plane(engine) == health.HealthCheckResponse.SERVING)
        assert core_state(engine) == v1.HEALTH_STATE_READY
        assert engine.generate(generate_request()).code is grpc.StatusCode.OK
        assert idle(engine)
    assert "device lost" in caplog.text
