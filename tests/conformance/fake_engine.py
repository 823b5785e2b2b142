"""A small right engine on a real gRPC server: canned tokens, no model.

Tests tell it which rules to break, or give it functions that spoil its streams and answers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import grpc

from conformance.wire.declared import Declared, TargetClass
from oe_wire import health, v1
from oe_wire.services import handlers
from tests.conformance.fake_metadata import is_bad
from tests.conformance.fake_rules import MODEL, RULES, capabilities, model_info, prompt_length
from tests.conformance.fake_tokens import KNOWN_TOKENS, Stopped, generate

Stream = Iterator[v1.GenerateResponse]
ERROR_NAMES = {
    grpc.StatusCode.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    grpc.StatusCode.NOT_FOUND: "MODEL_NOT_FOUND",
    grpc.StatusCode.ALREADY_EXISTS: "DUPLICATE_REQUEST",
    grpc.StatusCode.FAILED_PRECONDITION: "ROLE_MISMATCH",
}
# A request for more tokens than this takes STEP seconds per message, so that it is still running
# when the next call arrives; shorter ones are served as fast as possible.
LONG = 64
STEP = 0.004
REMEMBERED = 1000
# Every open watch takes one, and fifty must be possible beside other calls.
THREADS = 80
SERVICES = ("Inference", "Control", "OpenEngineDiscovery")


@dataclass(slots=True)
class Behaviour:
    """How the fake departs from a right engine.

    breaks: rows of RULES (`GEN-001`) that are not checked. codes: the status that a row is
    refused with instead of its own. spoil: changes a stream. details: text of refusals, given the
    request. model: the ModelInfo that is declared and enforced. reuse_ids: whether active ids are
    taken for new requests. keep_ids: whether ids of ended streams stay taken. trailers: whether
    refusals carry their ErrorCode. refuse_also: a status for
    requests that a right engine takes.
    """

    breaks: frozenset[str] = frozenset()
    codes: dict[str, grpc.StatusCode] = field(default_factory=dict)
    spoil: Callable[[v1.GenerateRequest, Stream], Stream] | None = None
    details: Callable[[v1.GenerateRequest], str] = lambda request: "bad request"
    model: v1.ModelInfo = field(default_factory=model_info)
    capabilities: v1.Capabilities = field(default_factory=capabilities)
    trailers: bool = True
    refuse_also: Callable[[v1.GenerateRequest], grpc.StatusCode | None] | None = None
    reuse_ids: bool = False
    keep_ids: bool = False


class LateRefusal(Exception):
    """Raised by a `spoil` function: ends the stream with a status after what was sent."""

    def __init__(self, code: grpc.StatusCode, details: str = "late") -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class FakeEngine:
    """The server; a context manager. `declared` is what detection would find out about it."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.lock = threading.Lock()
        self.active: dict[str, threading.Event] = {}
        self.finished: OrderedDict[str, None] = OrderedDict()
        self.requests: list[v1.GenerateRequest] = []
        self._server = grpc.server(ThreadPoolExecutor(THREADS))
        discovery = _Discovery(self)
        for service, servicer in (
            ("openengine.v1.Inference", _Inference(self)),
            ("openengine.v1.Control", _Control(self)),
            ("openengine.v1.OpenEngineDiscovery", discovery),
            ("grpc.health.v1.Health", _Health()),
        ):
            self._server.add_generic_rpc_handlers((handlers(service, servicer),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def declared(self) -> Declared:
        scope = self.behaviour.capabilities
        of_model = v1.Capabilities()
        of_model.CopyFrom(scope)
        of_model.model = MODEL
        return Declared(
            TargetClass.PROFILE_AWARE,
            "v0.1.0",
            server_info=server_info(),
            engine_info=engine_info(),
            engine_scope=scope,
            capabilities=of_model,
            model=self.behaviour.model,
            model_name=MODEL,
            known_tokens=KNOWN_TOKENS,
        )

    def __enter__(self) -> FakeEngine:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort_all()
        self._server.stop(0).wait(10)

    def begin(self, request_id: str) -> threading.Event | None:
        """Register an id; None when it is taken."""
        with self.lock:
            taken = request_id in self.active and not self.behaviour.reuse_ids
            if taken or (self.behaviour.keep_ids and request_id in self.finished):
                return None
            self.active[request_id] = aborted = threading.Event()
            return aborted

    def end(self, request_id: str) -> None:
        """Free an id and remember that it was used."""
        with self.lock:
            self.active.pop(request_id, None)
            self.finished[request_id] = None
            if len(self.finished) > REMEMBERED:
                self.finished.popitem(last=False)

    def abort(self, request_id: str) -> str:
        """What became of an id: aborted, finished or unknown."""
        with self.lock:
            if request_id in self.active:
                self.active[request_id].set()
                return "aborted"
            return "finished" if request_id in self.finished else "unknown"

    def abort_all(self) -> int:
        """Abort everything that runs; how many those were."""
        with self.lock:
            for aborted in self.active.values():
                aborted.set()
            return len(self.active)


def server_info() -> v1.ServerInfo:
    """An aggregated engine that speaks revision 1."""
    return v1.ServerInfo(
        engine_name="fake",
        engine_version="1",
        engine_role=v1.ENGINE_ROLE_AGGREGATED,
        instance_id="fake-1",
        supported_models=[MODEL],
        schema_revision=1,
        minimum_client_revision=1,
        schema_release="v0.1.0",
    )


def engine_info() -> v1.EngineInfo:
    """The same facts with epoch and revision."""
    info = v1.EngineInfo.FromString(server_info().SerializeToString())
    info.configuration_epoch = info.capability_revision = 1
    return info


def refuse(context: Any, code: grpc.StatusCode, details: str, name: str | None = None) -> None:
    """End a call with a status and the trailer that names its ErrorCode; does not return."""
    if name:
        context.set_trailing_metadata((("openengine-error-code", name),))
    context.abort(code, details)


class _Inference:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def Generate(self, request: v1.GenerateRequest, context: Any) -> Stream:
        behaviour = self.engine.behaviour
        with self.engine.lock:
            self.engine.requests.append(request)
        for rule in RULES:
            if rule.row not in behaviour.breaks and rule.breaks(request, behaviour.model):
                code = behaviour.codes.get(rule.row, rule.code)
                self._refuse(context, code, behaviour.details(request))
        also = None if behaviour.refuse_also is None else behaviour.refuse_also(request)
        if also is not None:
            self._refuse(context, also, behaviour.details(request))
        if is_bad(context.invocation_metadata() or ()):
            self._refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "bad metadata")
        aborted = self.engine.begin(request.request_id)
        if aborted is None:
            self._refuse(context, grpc.StatusCode.ALREADY_EXISTS, "the id is active")
            return
        try:
            stream = self._paced(request, aborted, context)
            yield from stream if behaviour.spoil is None else behaviour.spoil(request, stream)
        except LateRefusal as refusal:
            self._refuse(context, refusal.code, refusal.details)
        finally:
            self.engine.end(request.request_id)

    def _refuse(self, context: Any, code: grpc.StatusCode, details: str) -> None:
        name = ERROR_NAMES.get(code) if self.engine.behaviour.trailers else None
        refuse(context, code, details, name)

    def _paced(self, request: v1.GenerateRequest, aborted: threading.Event, context: Any) -> Stream:
        slow = request.stopping.max_tokens > LONG
        room = self.engine.behaviour.model.max_context_length - prompt_length(request)

        def stopped() -> Stopped:
            over = aborted.wait(STEP) if slow else aborted.is_set()
            return Stopped.ABORTED if over else Stopped.NO if context.is_active() else Stopped.GONE

        return generate(request, max(0, room), stopped)


class _Control:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def GetServerInfo(self, request: v1.GetServerInfoRequest, context: Any) -> v1.ServerInfo:
        return server_info()

    def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Any) -> v1.ModelInfo:
        return _Discovery(self.engine).GetModelInfo(request, context)

    def Health(self, request: v1.HealthRequest, context: Any) -> v1.HealthResponse:
        if request.model:
            _Discovery(self.engine).GetModelInfo(
                v1.GetModelInfoRequest(model=request.model), context
            )
        answer = v1.HealthResponse(state=v1.HEALTH_STATE_READY)
        if request.include_inference_probe:
            answer.checks.add(name="inference_probe", state=v1.HEALTH_STATE_READY)
        if request.role in {v1.ENGINE_ROLE_PREFILL, v1.ENGINE_ROLE_DECODE}:
            answer.checks.add(name="role", state=v1.HEALTH_STATE_NOT_READY)
        return answer

    def Abort(self, request: v1.AbortRequest, context: Any) -> v1.AbortResponse:
        match request.WhichOneof("target"):
            case "request_id" if request.request_id:
                outcome = self.engine.abort(request.request_id)
            case "all_requests":
                outcome = "aborted" if self.engine.abort_all() else "finished"
            case "kv_session":
                refuse(context, grpc.StatusCode.UNIMPLEMENTED, "kv_session")
                outcome = ""
            case _:
                refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "target", "INVALID_ARGUMENT")
                outcome = ""
        if outcome == "unknown":
            refuse(context, grpc.StatusCode.NOT_FOUND, "unknown id", "REQUEST_NOT_FOUND")
        aborted = v1.ABORT_STATUS_ABORTED
        return v1.AbortResponse(
            status=aborted if outcome == "aborted" else v1.ABORT_STATUS_ALREADY_FINISHED
        )


class _Discovery:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def GetEngineInfo(self, request: v1.GetEngineInfoRequest, context: Any) -> v1.EngineInfo:
        return engine_info()

    def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Any) -> v1.ModelInfo:
        model = self.engine.behaviour.model
        if not request.model:
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "model", "INVALID_ARGUMENT")
        if request.model not in {model.served_model_name, *model.served_model_aliases}:
            refuse(context, grpc.StatusCode.NOT_FOUND, "unknown model", "MODEL_NOT_FOUND")
        return model

    def GetCapabilities(self, request: v1.GetCapabilitiesRequest, context: Any) -> v1.Capabilities:
        answer = v1.Capabilities()
        answer.CopyFrom(self.engine.behaviour.capabilities)
        if request.model:
            self.GetModelInfo(v1.GetModelInfoRequest(model=request.model), context)
            answer.model = request.model
        return answer


class _Health:
    KNOWN = frozenset({"", *(f"openengine.v1.{name}" for name in SERVICES)})

    def Check(self, request: health.HealthCheckRequest, context: Any) -> health.HealthCheckResponse:
        if request.service not in self.KNOWN:
            refuse(context, grpc.StatusCode.NOT_FOUND, "unknown service")
        return health.HealthCheckResponse(status=health.HealthCheckResponse.SERVING)

    def Watch(
        self, request: health.HealthCheckRequest, context: Any
    ) -> Iterator[health.HealthCheckResponse]:
        known = request.service in self.KNOWN
        serving = health.HealthCheckResponse.SERVING
        unknown = health.HealthCheckResponse.SERVICE_UNKNOWN
        over = threading.Event()
        if context.add_callback(over.set):
            yield health.HealthCheckResponse(status=serving if known else unknown)
            over.wait()
