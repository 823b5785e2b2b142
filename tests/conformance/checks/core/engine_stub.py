"""A small right engine over real gRPC, made of data that a test changes to break one rule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

import grpc
from google.protobuf.message import Message
from hypothesis import Phase, given, settings

from conformance.checks import all_checks
from conformance.checks.check import Check
from conformance.checks.probe import Probe, Spending
from conformance.checks.violation import NotJudged, Tolerated, Violation
from conformance.model.case import Case
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.detect import detect
from conformance.wire.pace import Pace
from conformance.wire.target import Target
from oe_wire import health as health_wire
from oe_wire import v1
from oe_wire.services import SERVICES, Method

INFERENCE = "openengine.v1.Inference"
CONTROL = "openengine.v1.Control"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
HEALTH = "grpc.health.v1.Health"
SERVING = health_wire.HealthCheckResponse.SERVING
CHECKS = all_checks()
# What a call of the stub may take at least, on the slowest machine that tests run on.
LEAST_CALL_SECONDS = 3.0
# What a test puts in place of a handler: it takes the request and the call.
Reply = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """Raised by a handler to end its call with a status."""

    code: grpc.StatusCode
    details: str = "refused"


class StubEngine:
    """A right engine. Tests change its messages, replace `replies` by `Service/Rpc`, or replace
    `after_abort`, which says what a stream sends once it is aborted.
    """

    def __init__(self) -> None:
        self.services = [INFERENCE, CONTROL, DISCOVERY, HEALTH]
        self.info = v1.EngineInfo(
            engine_name="stub",
            engine_version="1",
            engine_role=v1.ENGINE_ROLE_AGGREGATED,
            instance_id="instance-1",
            supported_models=["stub-model"],
            parallelism=v1.ParallelismInfo(
                data_parallel_size=2,
                data_parallel_rank=1,
                decode_context_parallel_size=1,
            ),
            schema_revision=1,
            minimum_client_revision=1,
            schema_release="v0.1.0",
            configuration_epoch=1,
            capability_revision=1,
        )
        self.generation = v1.GenerationCapabilities(
            guided_decoding=v1.GuidedDecodingCapabilities(supported=False),
            output_logprobs=v1.LogprobCapabilities(
                supported=True,
                candidate_selection_modes=[v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N],
            ),
            max_num_sequences=3,
        )
        self.model = v1.ModelInfo(
            model_id="org/stub",
            served_model_name="stub-model",
            served_model_aliases=["stub"],
            max_context_length=8192,
            max_output_tokens=8192,
            supports_text_input=True,
            supports_token_ids_input=True,
            generation=self.generation,
        )
        self.scope = v1.Capabilities(
            profiles=[
                v1.ServiceProfile(
                    name="core", major=1, services=[INFERENCE, CONTROL, DISCOVERY, HEALTH]
                )
            ],
            instance_id="instance-1",
            configuration_epoch=1,
            capability_revision=1,
            change_notices=[v1.CAPABILITY_CHANGE_NOTICE_RECONNECT],
            core=v1.CoreCapabilities(
                abort_targets=[
                    v1.ABORT_TARGET_KIND_REQUEST_ID,
                    v1.ABORT_TARGET_KIND_ALL_REQUESTS,
                ],
                finished_request_retention_ms=60_000,
            ),
            generation=self.generation,
        )
        self.load = v1.LoadInfo(instance_id="instance-1", running_requests=0, queued_requests=0)
        self.state = v1.HealthResponse(
            state=v1.HEALTH_STATE_READY,
            checks=[v1.HealthCheck(name="scheduler", state=v1.HEALTH_STATE_READY)],
        )
        self.names = dict.fromkeys(("", INFERENCE, CONTROL, DISCOVERY), SERVING)
        self.replies: dict[str, Reply] = {}
        self.after_abort: Callable[[v1.GenerateRequest, set[int]], Iterable[v1.GenerateResponse]]
        self.after_abort = cancelled
        self.active: dict[str, threading.Event] = {}
        self.finished: set[str] = set()
        self.closing = threading.Event()

    # Handlers, by RPC name

    def get_engine_info(self, _: Message) -> v1.EngineInfo:
        return self.info

    def get_server_info(self, _: Message) -> v1.ServerInfo:
        message = v1.ServerInfo.FromString(self.info.SerializeToString())
        message.DiscardUnknownFields()
        return message

    def get_model_info(self, request: v1.GetModelInfoRequest) -> v1.ModelInfo:
        self.resolve(request.model)
        return self.model

    def get_capabilities(self, request: v1.GetCapabilitiesRequest) -> v1.Capabilities:
        if request.model:
            self.resolve(request.model)
        return self.scope

    def get_load(self, _: Message) -> v1.LoadInfo:
        return self.load

    def health(self, _: Message) -> v1.HealthResponse:
        return self.state

    def abort(self, request: v1.AbortRequest) -> v1.AbortResponse:
        target = request.WhichOneof("target")
        if target == "kv_session":
            raise Refusal(grpc.StatusCode.UNIMPLEMENTED)
        if target != "request_id" or not request.request_id:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT)
        stop = self.active.get(request.request_id)
        if stop is not None:
            stop.set()
            return v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)
        if request.request_id in self.finished:
            return v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)
        raise Refusal(grpc.StatusCode.NOT_FOUND)

    def check(self, request: health_wire.HealthCheckRequest) -> health_wire.HealthCheckResponse:
        if request.service not in self.names:
            raise Refusal(grpc.StatusCode.NOT_FOUND)
        return health_wire.HealthCheckResponse(status=self.names[request.service])

    def watch(
        self, request: health_wire.HealthCheckRequest
    ) -> Iterator[health_wire.HealthCheckResponse]:
        unknown = health_wire.HealthCheckResponse.SERVICE_UNKNOWN
        status = self.names.get(request.service, unknown)
        yield health_wire.HealthCheckResponse(status=status)
        self.closing.wait(30)

    def generate(self, request: v1.GenerateRequest) -> Iterator[v1.GenerateResponse]:
        self.resolve(request.model)
        stop = self.active.setdefault(request.request_id, threading.Event())
        outputs = range(max(1, request.sampling.num_sequences))
        try:
            for _step in range(request.stopping.max_tokens):
                if stop.wait(0.001):
                    yield from self.after_abort(request, set(outputs))
                    return
                for index in outputs:
                    yield token(request, index)
            for index in outputs:
                yield end(request, index, v1.FINISH_REASON_LENGTH, last=index == outputs[-1])
        finally:
            self.active.pop(request.request_id, None)
            self.finished.add(request.request_id)

    def resolve(self, name: str) -> None:
        """Refuse a model name that is not served."""
        if not name:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT)
        if name not in {"stub-model", *self.model.served_model_aliases}:
            raise Refusal(grpc.StatusCode.NOT_FOUND)

    # Server

    def serve(self) -> tuple[grpc.Server, str]:
        """Start a server on a free port; it and its address."""
        server = grpc.server(ThreadPoolExecutor(32))
        server.add_generic_rpc_handlers((_Router(self),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, f"127.0.0.1:{port}"


HANDLERS = {
    "GetEngineInfo": StubEngine.get_engine_info,
    "GetServerInfo": StubEngine.get_server_info,
    "GetModelInfo": StubEngine.get_model_info,
    "GetCapabilities": StubEngine.get_capabilities,
    "GetLoad": StubEngine.get_load,
    "Health": StubEngine.health,
    "Abort": StubEngine.abort,
    "Check": StubEngine.check,
    "Watch": StubEngine.watch,
    "Generate": StubEngine.generate,
}


class _Router(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Finds the handler of a call when it comes, so that a test may change the engine any time."""

    def __init__(self, engine: StubEngine) -> None:
        self.engine = engine

    def service(self, call: Any) -> Any:
        service, _, name = call.method.lstrip("/").partition("/")
        method = next((m for m in SERVICES.get(service, ()) if m.name == name), None)
        if method is None or service not in self.engine.services:
            return None
        if name not in HANDLERS and _short(method) not in self.engine.replies:
            return None
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        behaviour = self._stream(method) if method.server_streaming else self._unary(method)
        return make(behaviour, method.request.FromString, method.response.SerializeToString)

    def _reply(self, method: Method, request: Message, context: Any) -> Any:
        replaced = self.engine.replies.get(_short(method))
        if replaced is not None:
            return replaced(request, context)
        return cast(Any, HANDLERS[method.name])(self.engine, request)

    def _unary(self, method: Method) -> Callable[[Any, Any], Any]:
        def reply(request: Any, context: Any) -> Any:
            try:
                return self._reply(method, request, context)
            except Refusal as refusal:
                context.abort(refusal.code, refusal.details)

        return reply

    def _stream(self, method: Method) -> Callable[[Any, Any], Iterator[Any]]:
        def reply(request: Any, context: Any) -> Iterator[Any]:
            try:
                yield from self._reply(method, request, context)
            except Refusal as refusal:
                context.abort(refusal.code, refusal.details)

        return reply


def _short(method: Method) -> str:
    return f"{method.service.rpartition('.')[2]}/{method.name}"


def refuse(code: grpc.StatusCode) -> Reply:
    """A reply that ends the call with `code`."""

    def reply(_request: Any, _context: Any) -> Any:
        raise Refusal(code)

    return reply


def token(request: v1.GenerateRequest, index: int) -> v1.GenerateResponse:
    output = v1.TokenOutput(output_index=index, tokens=[v1.TokenInfo(token_id=5)], text="a")
    return v1.GenerateResponse(request_id=request.request_id, token=output)


def end(request: v1.GenerateRequest, index: int, reason: int, *, last: bool) -> v1.GenerateResponse:
    """The terminal event of one output, with usage on the last one."""
    finished = v1.GenerationFinished(output_index=index, reason=reason)
    response = v1.GenerateResponse(request_id=request.request_id, finished=finished)
    if last:
        response.usage.prompt_tokens = 4
        response.usage.total_tokens = 4
    return response


def failure(request: v1.GenerateRequest, code: int) -> v1.GenerateResponse:
    return v1.GenerateResponse(request_id=request.request_id, error=v1.EngineError(code=code))


def cancelled(request: v1.GenerateRequest, open_outputs: set[int]) -> Iterator[v1.GenerateResponse]:
    """The right end of an aborted stream."""
    for index in sorted(open_outputs):
        last = index == max(open_outputs)
        yield end(request, index, v1.FINISH_REASON_CANCELLED, last=last)


def declared_by(engine: StubEngine) -> Declared:
    """What detection makes of the engine."""
    server, address = engine.serve()
    try:
        with Connection(Target(address)) as connection:
            return detect(connection, timeout=10, model=None)
    finally:
        server.stop(None)


class Impatient(Pace):
    """A pace whose factor below 1 shortens what a rule may take, and never what a call may: the
    stub answers at once, but on a busy machine not within the hundredths of a second that would
    be left.
    """

    def unary_limit(self) -> float:
        """As for a factor of 1, but not above what a test would wait for in vain."""
        return max(super().unary_limit(), LEAST_CALL_SECONDS)

    def generate_limit(self, tokens: int) -> float:
        """As `unary_limit`."""
        return max(super().generate_limit(tokens), LEAST_CALL_SECONDS)


def verdict(
    requirement: str,
    engine: StubEngine,
    *,
    declared: Declared | None = None,
    slow_factor: float = 1.0,
    after_events: int | None = None,
    drawn: int = 0,
) -> str:
    """What the check of a row (`STREAM-001` of core, `OE-LOAD-001` of others) says about the engine
    over its table of cases: `pass`, `fail`, `tolerated`, or `skip` when no case was judged.

    slow_factor below 1 shortens the waits of a check that is about to fail. after_events replaces
    the moment of the Abort in the cases. drawn: run this many cases of the strategy instead.
    """
    server, address = engine.serve()
    try:
        with Connection(Target(address)) as connection:
            found = declared or detect(connection, timeout=10, model=None)
            check = CHECKS.get(requirement) or CHECKS[f"OE-CORE-{requirement}"]
            pace = Impatient(unary=0.001, slow_factor=slow_factor)
            stop = threading.Event()
            probe = Probe(check.requirement, connection, found, pace, Spending(999, 9999), stop)
            changes = {} if after_events is None else {"abort_after_events": after_events}
            table = check.table(found) if check.table else ()
            return _run(check, probe, draw(check, found, drawn) if drawn else table, changes)
    finally:
        engine.closing.set()
        server.stop(None)


def draw(check: Check, declared: Declared, count: int) -> list[Case]:
    """Cases of the check's strategy, the same ones each time."""
    cases: list[Case] = []
    assert check.strategy is not None

    def collect(case: Case) -> None:
        cases.append(case)

    settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], derandomize=True
    )(given(check.strategy(declared))(collect))()
    return cases


def _run(check: Check, probe: Probe, cases: Iterable[Case], changes: Mapping[str, Any]) -> str:
    judged = False
    for planned in cases:
        case = replace(planned, params={**planned.params, **changes})
        probe.new_case()
        try:
            check.body(probe, case)
        except NotJudged:
            continue
        except Tolerated:
            return "tolerated"
        except Violation:
            return "fail"
        finally:
            probe.new_case()
        judged = True
    return "pass" if judged else "skip"


def legacy(engine: StubEngine) -> None:
    """Make it a v0.1.0 engine: no discovery and no standard health."""
    engine.services = [INFERENCE, CONTROL]
