"""A v0.1.0 server around the toy engine: Inference and Control on grpc.aio, nothing else."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import grpc

from oe_wire import v1
from oe_wire.services import handlers
from tests.legacy_engine.behaviour import Behaviour
from tests.legacy_engine.control import Control
from tests.legacy_engine.prefill import prefill
from tests.legacy_engine.single import single_handlers
from tests.legacy_engine.stream import Active, generate
from tests.legacy_engine.validate import MalformedGuide, Refusal, validate

REMEMBERED = 10_000
DRAFT_INTERNAL = 12
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(slots=True)
class State:
    """What Inference and Control share."""

    behaviour: Behaviour
    instance_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    active: dict[str, Active] = field(default_factory=dict)
    finished: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def forget(self, request_id: str) -> None:
        """The stream of a request is over."""
        del self.active[request_id]
        self.finished[request_id] = None
        while len(self.finished) > REMEMBERED:
            self.finished.popitem(last=False)


class Inference:
    """The data plane."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def Generate(
        self, request: v1.GenerateRequest, context: Context
    ) -> AsyncIterator[v1.GenerateResponse]:
        """Validate, admit, stream."""
        state, request_id = self._state, request.request_id or uuid.uuid4().hex
        try:
            validate(request, tuple(context.invocation_metadata() or ()), state.behaviour)
            self._admit(request_id)
        except Refusal as refusal:
            await context.abort(refusal.code, refusal.details)
        except MalformedGuide:
            yield _failure(request_id, state.behaviour)
            return
        active = state.active[request_id] = Active(request, request_id)
        prefilling = state.behaviour.role == v1.ENGINE_ROLE_PREFILL
        try:
            async for response in (prefill if prefilling else generate)(active, state.behaviour):
                yield response
        finally:
            state.forget(request_id)

    def _admit(self, request_id: str) -> None:
        most = self._state.behaviour.max_running
        if request_id in self._state.active:
            raise Refusal(grpc.StatusCode.ALREADY_EXISTS, "the request id is active")
        if most is not None and len(self._state.active) >= most:
            raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests")


def _failure(request_id: str, behaviour: Behaviour) -> v1.GenerateResponse:
    code = DRAFT_INTERNAL if behaviour.draft else v1.ERROR_CODE_INTERNAL
    error = v1.EngineError(code=code, message="the engine failed")
    return v1.GenerateResponse(request_id=request_id, error=error)


class LegacyEngine:
    """The server on a thread of its own; a context manager. `address` is `127.0.0.1:port`."""

    def __init__(self, behaviour: Behaviour, port: int = 0) -> None:
        self.state = State(behaviour)
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="legacy-engine")
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        self._server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        inference, control = Inference(self.state), Control(self.state)
        if self.state.behaviour.single_service:
            self._server.add_generic_rpc_handlers((single_handlers(inference, control),))
        else:
            for service, servicer in (
                ("openengine.v1.Inference", inference),
                ("openengine.v1.Control", control),
            ):
                self._server.add_generic_rpc_handlers((handlers(service, servicer),))
        self._port = self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        await self._server.start()

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=None)
