"""Metadata of calls beyond plain Generate: other services (META-011), KV sessions (META-005)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import grpc

from conformance.checks.check import check
from conformance.checks.core.compatibility import PREFILL, STARTS
from conformance.checks.core.judging import BUSY, outcome, send_cut
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.oracle.metadata import TARGET_RANK
from conformance.strategies import simple_request
from conformance.strategies.metadata import BAD_KEYS
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Metadata, Transcript
from oe_wire import v1

TASKS = "openengine.v1.OpenEngineTasks"
RELEASE = "openengine.v1.OpenEngineKv/ReleaseKvSession"
UNKNOWN_SESSION = "oe-conform-no-session"


class Start(Protocol):
    """Starts a request of one service and ends what that opened."""

    def __call__(
        self, probe: Probe, request: v1.GenerateRequest, metadata: Metadata = ()
    ) -> AbstractContextManager[LiveCall]: ...


@contextmanager
def _embed(
    probe: Probe, request: v1.GenerateRequest, metadata: Metadata = ()
) -> Iterator[LiveCall]:
    context = v1.TaskRequestContext(request_id=request.request_id, model=request.model)
    task = v1.EmbedRequest(context=context, inputs=[v1.TaskInput(item_id="0", text="a")])
    yield probe.start(f"{TASKS}/Embed", task, metadata=metadata)


def starts(declared: Declared) -> Mapping[str, Start]:
    """How to start a request of each advertised profile that carries some."""
    known: dict[str, Start] = {**STARTS, "tasks": _embed}
    return {name: start for name, start in known.items() if name in declared.profiles}


def _elsewhere(declared: Declared) -> Iterable[Case]:
    for profile in starts(declared):
        for metadata in BAD_KEYS:
            request = simple_request(declared)
            yield Case(request, metadata, {"profile": profile})


@check(
    "OE-CORE-META-011",
    table=_elsewhere,
    advice="Use one reader of the openengine- keys for every RPC that carries requests.",
)
def other_data_planes(probe: Probe, case: Case) -> None:
    """Malformed and repeated keys are refused wherever requests are taken."""
    start = starts(probe.declared).get(case.params["profile"])
    if start is None:
        probe.skip("the engine does not advertise the profile")
    plain = _asked(probe, start, case, ())
    if not plain.accepted:
        probe.skip(f"a plain request is not served: {describe(plain)}")
    call = _asked(probe, start, case, case.metadata)
    if call.rejected and call.ending.code in BUSY:
        probe.skip(f"the engine was busy: {call.ending.code.name}")
    probe.expect_rejected(
        call, grpc.StatusCode.INVALID_ARGUMENT, because="the metadata is malformed"
    )


def _asked(probe: Probe, start: Start, case: Case, metadata: Metadata) -> Transcript:
    request = probe.prepared(case)
    with start(probe, request, metadata) as live:
        live.wait_end(probe.limit(request))
        return probe.finish(live)


def _sessions(declared: Declared) -> Iterable[Case]:
    yield Case(simple_request(declared))


@check(
    "OE-CORE-META-005",
    table=_sessions,
    advice="Compare openengine-target-dp-rank with kv.session.dp_rank before you look the session "
    "up.",
)
def session_rank(probe: Probe, case: Case) -> None:
    """A target rank that is not the session's is refused."""
    request = probe.prepared(case)
    real = _prefilled(probe, request)
    session = real or v1.KvSessionRef(session_id=UNKNOWN_SESSION, dp_rank=1)
    request.request_id = probe.fresh_id()
    request.kv.session.CopyFrom(session)
    # Of ranks 0 and 1 one is the session's, and the other may well exist.
    other = ((TARGET_RANK, "0" if session.dp_rank else "1"),)
    call = send_cut(probe, Case(request, other), request)
    if real is not None:
        probe.call(RELEASE, v1.ReleaseKvSessionRequest(session_id=session.session_id))
    elif not call.accepted:
        _unless_unknown(probe, request, call)
    if not call.rejected or call.ending.code is not grpc.StatusCode.INVALID_ARGUMENT:
        probe.fail("INVALID_ARGUMENT: the ranks disagree", outcome(call), call)


def _unless_unknown(probe: Probe, request: v1.GenerateRequest, call: Transcript) -> None:
    """Skip when a session that nobody opened is refused in the same way with its own rank."""
    request.request_id = probe.fresh_id()
    own = ((TARGET_RANK, str(request.kv.session.dp_rank)),)
    agreeing = send_cut(probe, Case(request, own), request)
    if agreeing.rejected and agreeing.ending.code is call.ending.code:
        probe.skip(f"a made-up session is refused either way: {describe(call)}")


def _prefilled(probe: Probe, request: v1.GenerateRequest) -> v1.KvSessionRef | None:
    """A session of the engine's own, where it prefills as well as decodes."""
    scope = probe.declared.capabilities
    if scope is None or v1.KV_HANDOFF_ROLE_PREFILL not in scope.kv.handoff.roles:
        return None
    call = probe.call(PREFILL, request, deadline=probe.limit(request))
    for message in call.messages:
        if isinstance(message, v1.GenerateResponse) and message.HasField("prefill_ready"):
            return message.prefill_ready.kv_session
    return None
