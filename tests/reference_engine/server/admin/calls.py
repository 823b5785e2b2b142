"""Short names for what tests ask of OpenEngineAdmin and OpenEngineTesting."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from oe_wire import health, v1
from reference_engine.engine.config import EngineConfig
from reference_engine.server.app import ServeOptions
from reference_engine.server.deployment import AdminLimits, PausedAdmission
from reference_engine.server.listen import Address
from tests.reference_engine.server.running import (
    LIMIT,
    WINDOW,
    Client,
    Outcome,
    eventually,
    generate_request,
)

ADMIN = "openengine.v1.OpenEngineAdmin"
TESTING = "openengine.v1.OpenEngineTesting"
PAUSE = f"{ADMIN}/PauseGeneration"
ABORT, WAIT, KEEP = v1.PAUSE_MODE_ABORT, v1.PAUSE_MODE_WAIT, v1.PAUSE_MODE_KEEP
RUNNING, PAUSING = v1.SCHEDULER_STATE_RUNNING, v1.SCHEDULER_STATE_PAUSING
PAUSED = v1.SCHEDULER_STATE_PAUSED
SERVING = health.HealthCheckResponse.SERVING
NOT_SERVING = health.HealthCheckResponse.NOT_SERVING

CONFIG = EngineConfig(num_blocks=4 * WINDOW // 16, max_running=16, max_waiting=16)


def options(admission: PausedAdmission = PausedAdmission.REJECT, **changes: Any) -> ServeOptions:
    return ServeOptions(
        Address("127.0.0.1", 0), admin=AdminLimits(admission), testing=True, **changes
    )


def state(client: Client) -> v1.AdminState:
    return client.call(f"{ADMIN}/GetAdminState", v1.GetAdminStateRequest()).message


def pause(client: Client, mode: int = KEEP, *, timeout: float = LIMIT, **fields: Any) -> Outcome:
    return client.call(PAUSE, v1.PauseGenerationRequest(mode=mode, **fields), timeout=timeout)


def resume(client: Client) -> Outcome:
    return client.call(f"{ADMIN}/ResumeGeneration", v1.ResumeGenerationRequest())


def reset(client: Client, *kinds: int) -> Outcome:
    return client.call(f"{ADMIN}/ResetCache", v1.ResetCacheRequest(kinds=kinds))


def inject(client: Client, kind: str, **fields: Any) -> Outcome:
    request = v1.InjectFaultRequest(kind=v1.FaultKind.Value(f"FAULT_KIND_{kind}"), **fields)
    return client.call(f"{TESTING}/InjectFault", request)


def clear(client: Client) -> None:
    assert client.call(f"{TESTING}/ClearFaults", v1.ClearFaultsRequest()).message is not None


def reconfigure(client: Client, **fields: Any) -> Outcome:
    return client.call(f"{TESTING}/Reconfigure", v1.ReconfigureRequest(**fields))


def status(client: Client, service: str = "") -> int:
    request = health.HealthCheckRequest(service=service)
    return client.call("grpc.health.v1.Health/Check", request).message.status


def diagnosis(client: Client, *, probe: bool = False) -> v1.HealthResponse:
    request = v1.HealthRequest(include_inference_probe=probe)
    return client.call("openengine.v1.Control/Health", request).message


def cached(client: Client, prompt: str) -> int:
    outcome = client.generate(generate_request(prompt))
    assert outcome.code is grpc.StatusCode.OK
    return outcome.messages[-1].usage.cached_prompt_tokens


@contextmanager
def waiting_pause(client: Client, **fields: Any) -> Iterator["grpc.Future[Any]"]:
    """A Pause(WAIT) that waits for a running request; cancelled after the block."""
    method = client.channel.unary_unary(
        f"/{PAUSE}",
        v1.PauseGenerationRequest.SerializeToString,
        v1.AdminState.FromString,
    )
    call = method.future(v1.PauseGenerationRequest(mode=WAIT, **fields), timeout=LIMIT)
    try:
        assert eventually(lambda: state(client).scheduler == PAUSING)
        yield call
    finally:
        call.cancel()


def open_requests(client: Client) -> tuple[int, int]:
    found = state(client)
    return found.in_flight_requests, found.held_requests
