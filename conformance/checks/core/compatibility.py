"""Older clients on a profile-aware engine, and requests of later services under Control.Abort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import grpc

from conformance.checks.check import check
from conformance.checks.core.abort_run import END_SECONDS, abort_status, margin, send_abort
from conformance.checks.core.discovery_calls import answer
from conformance.checks.core.judging import BUSY, completed
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.strategies.simple import PROSE, long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Metadata, Transcript
from oe_wire import v1

SESSIONS = "openengine.v1.OpenEngineSessions"
EXECUTE = "openengine.v1.OpenEngineOrchestration/Execute"
PREFILL = "openengine.v1.OpenEngineKv/Prefill"
FEW_TOKENS = 4


@check(
    "OE-CORE-COMPAT-002",
    advice="Serve Inference and Control to clients that know nothing else: no RPC of them may "
    "depend on a call of a sibling service or on newer metadata.",
)
def old_client_served(probe: Probe, _: Case) -> None:
    """Discovery, health, generation and abort work with what v0.1.0 has."""
    server = _old(probe, "Control/GetServerInfo", v1.GetServerInfoRequest())
    info = answer(server, v1.ServerInfo)
    model = info.supported_models[0] if info is not None and info.supported_models else ""
    if not model:
        probe.skip("ServerInfo lists no model")
    _old(probe, "Control/GetModelInfo", v1.GetModelInfoRequest(model=model))
    _old(probe, "Control/Health", v1.HealthRequest())
    request = probe.prepared(simple_case(probe.declared, prompt=PROSE, max_tokens=FEW_TOKENS))
    request.model = model
    call = probe.generate(Case(request))
    if call.rejected and call.ending.code not in BUSY:
        probe.fail("a plain v0.1.0 request to be served", describe(call), call)
    completed(probe, call)
    _abort(probe, model)


def _old(
    probe: Probe,
    name: str,
    request: v1.GetServerInfoRequest | v1.GetModelInfoRequest | v1.HealthRequest,
) -> Transcript:
    call = probe.call(name, request)
    if not call.ending.ok:
        probe.fail(f"OK from {name}", describe(call), call)
    return call


def _abort(probe: Probe, model: str) -> None:
    """A running request is known to Control.Abort. Which answers are right has rows of its own."""
    request = probe.prepared(Case(long_request(probe.declared)))
    request.model = model
    live = probe.start_generate(Case(request))
    live.wait_event(1)
    call = send_abort(probe, request.request_id, live)
    if not live.wait_end(probe.pace.required(END_SECONDS) + margin(probe)):
        live.cancel()
    probe.finish(live)
    if call.ending.code is grpc.StatusCode.UNIMPLEMENTED:
        probe.fail("Control.Abort to be served", describe(call), call)


def _services(declared: Declared) -> Iterable[Case]:
    starts = [name for name in STARTS if name in declared.profiles]
    return [Case(long_request(declared), params={"profile": name}) for name in starts]


@contextmanager
def _turn(probe: Probe, request: v1.GenerateRequest, metadata: Metadata = ()) -> Iterator[LiveCall]:
    name = probe.fresh_id()
    opening = v1.OpenSessionRequest(
        session_id=name, model=request.model, mode=v1.SESSION_MODE_APPEND
    )
    opened = probe.call(f"{SESSIONS}/OpenSession", opening)
    if not opened.ending.ok:
        probe.skip(f"no session could be opened: {describe(opened)}")
    turn = v1.GenerateTurnRequest(request=request, turn=v1.SessionTurn(session_id=name))
    closing = v1.CloseSessionRequest(session_id=name, policy=v1.SESSION_CLOSE_POLICY_ABORT)
    try:
        limit = probe.limit(request)
        yield probe.start(f"{SESSIONS}/GenerateTurn", turn, metadata=metadata, deadline=limit)
    finally:
        probe.call(f"{SESSIONS}/CloseSession", closing)


@contextmanager
def _prefill(
    probe: Probe, request: v1.GenerateRequest, metadata: Metadata = ()
) -> Iterator[LiveCall]:
    yield probe.start(PREFILL, request, metadata=metadata, deadline=probe.limit(request))


@contextmanager
def _execute(
    probe: Probe, request: v1.GenerateRequest, metadata: Metadata = ()
) -> Iterator[LiveCall]:
    execution = v1.ExecuteRequest(request=request)
    yield probe.start(EXECUTE, execution, metadata=metadata, deadline=probe.limit(request))


STARTS = {"sessions": _turn, "kv_handoff": _prefill, "orchestration": _execute}


@check(
    "OE-CORE-COMPAT-003",
    table=_services,
    advice="Keep one table of active request ids for all services, and let Control.Abort look "
    "there.",
)
def one_abort_namespace(probe: Probe, case: Case) -> None:
    """Control.Abort ends a request that came through another service."""
    request = probe.prepared(case)
    with STARTS[case.params["profile"]](probe, request) as live:
        begun = live.wait_event(1)
        call = send_abort(probe, request.request_id, live)
        active = begun and not live.done
        in_time = live.wait_end(probe.pace.required(END_SECONDS) + margin(probe))
        live.cancel()
        stream = probe.finish(live)
    if not begun or stream.rejected:
        probe.skip(f"the request did not begin: {describe(stream)}")
    status = abort_status(call)
    if status == "ABORTED":
        if not in_time:
            wanted = f"the end of the stream within {END_SECONDS:g} s of ABORTED"
            probe.fail(wanted, "it still runs", stream)
    elif active or call.ending.code is grpc.StatusCode.UNIMPLEMENTED:
        probe.fail(f"ABORTED for a request of {stream.method}", status, call)
    else:
        probe.skip(f"the request had ended before the Abort, which answered {status}")
