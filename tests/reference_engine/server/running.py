"""An engine that serves from a thread of the test process, and a blocking client for it."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import grpc

from oe_wire import v1
from oe_wire.services import METHODS
from reference_engine.engine.config import EngineConfig
from reference_engine.model.load import LoadedModel
from reference_engine.ranks.rank import Rank
from reference_engine.server.app import App, ServeOptions
from reference_engine.server.listen import Address
from reference_engine.server.serving_loop import ServingLoop
from tests.reference_engine.engine.fakes import CONFIG, ByteTokenizer, random_model

LIMIT = 20.0
"""Seconds that anything may take; far above what it does take."""

_numbers = itertools.count()


def fresh_id() -> str:
    return f"request-{next(_numbers)}"


WINDOW = 4096
"""Long enough that a request up to it still runs when a test's next call comes."""


def fake_model(model: object = None) -> LoadedModel:
    """A byte-level model named `fake`."""
    config = replace(CONFIG, max_position_embeddings=WINDOW)
    return LoadedModel("fake", model or random_model(), ByteTokenizer(), config)


class GatedModel:
    """A model whose steps wait while the gate is closed, and throw what `fault` holds."""

    def __init__(self) -> None:
        self.model = random_model()
        self.device = self.model.device
        self.gate = threading.Event()
        self.fault: BaseException | None = None
        self.calls = 0

    def __call__(self, batch: Any, cache: Any) -> Any:
        self.gate.wait(LIMIT)
        self.calls += 1
        if self.fault is not None:
            raise self.fault
        return self.model(batch, cache)


@dataclass
class Outcome:
    """A finished call."""

    code: grpc.StatusCode
    details: str
    trailers: dict[str, str]
    messages: list[Any] = field(default_factory=list)

    @property
    def message(self) -> Any:
        """The only message of a call that must have succeeded."""
        assert self.code is grpc.StatusCode.OK, self.details
        (message,) = self.messages
        return message

    def text(self, index: int = 0) -> str:
        return "".join(token.text for token in self.tokens(index))

    def records(self, index: int = 0) -> list[Any]:
        return [record for token in self.tokens(index) for record in token.tokens]

    def tokens(self, index: int = 0) -> list[Any]:
        return [
            message.token
            for message in self.messages
            if message.WhichOneof("event") == "token" and message.token.output_index == index
        ]

    def ends(self) -> list[Any]:
        return [
            message.finished
            for message in self.messages
            if message.WhichOneof("event") == "finished"
        ]


class Client:
    """Calls by full RPC name."""

    def __init__(self, address: str, options: Sequence[tuple[str, int]] = ()) -> None:
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1), *options]
        )

    def start(self, name: str, request: Any, *, metadata: Any = (), timeout: float = LIMIT) -> Any:
        """Start a streaming call."""
        method = METHODS[name]
        call = self.channel.unary_stream(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        return call(request, metadata=metadata, timeout=timeout)

    def call(
        self, name: str, request: Any, *, metadata: Any = (), timeout: float = LIMIT
    ) -> Outcome:
        """Make a call and wait for its end."""
        method = METHODS[name]
        if method.server_streaming:
            return finish(self.start(name, request, metadata=metadata, timeout=timeout))
        unary = self.channel.unary_unary(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        try:
            message, call = unary.with_call(request, metadata=metadata, timeout=timeout)
        except grpc.RpcError as error:
            return Outcome(error.code(), error.details(), dict(error.trailing_metadata() or ()))
        return Outcome(call.code(), "", dict(call.trailing_metadata() or ()), [message])

    def generate(self, request: Any, *, metadata: Any = (), timeout: float = LIMIT) -> Outcome:
        return self.call(
            "openengine.v1.Inference/Generate", request, metadata=metadata, timeout=timeout
        )

    def start_generate(self, request: Any, *, metadata: Any = (), timeout: float = LIMIT) -> Any:
        return self.start(
            "openengine.v1.Inference/Generate", request, metadata=metadata, timeout=timeout
        )

    def abort(self, request_id: str) -> Outcome:
        return self.call("openengine.v1.Control/Abort", v1.AbortRequest(request_id=request_id))


def finish(call: Any) -> Outcome:
    """Read a streaming call to its end."""
    messages = []
    with suppress(grpc.RpcError):
        messages += call
    return Outcome(call.code(), call.details(), dict(call.trailing_metadata() or ()), messages)


class Running(Client):
    """A client of an engine in this process; `app` is for looking, on the loop's thread."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(app.address)
        self.app = app
        self.loop = loop

    @property
    def free_blocks(self) -> int:
        load = self.app.frontend.engine.load
        return load.total_blocks - load.used_blocks

    @property
    def total_blocks(self) -> int:
        return self.app.frontend.deployment.total_kv_blocks

    def stop(self, grace: float = 5.0) -> Any:
        """Begin to stop; a future of the end."""
        return asyncio.run_coroutine_threadsafe(self.app.stop(grace), self.loop)


@contextmanager
def serving(
    loaded: LoadedModel,
    config: EngineConfig,
    options: ServeOptions | None = None,
    ranks: tuple[Rank, ...] = (),
) -> Iterator[Running]:
    """Serve on a free port while the block runs, with an engine in this process or with ranks."""
    loop = ServingLoop()
    thread = threading.Thread(target=loop.run_forever, name="server-loop")
    thread.start()
    options = options or ServeOptions(Address("127.0.0.1", 0))
    try:
        starting = App.start(loaded, config, options, ranks)
        app = asyncio.run_coroutine_threadsafe(starting, loop).result(LIMIT)
        running = Running(app, loop)
        try:
            yield running
        finally:
            running.channel.close()
            running.stop(grace=0).result(LIMIT)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT)
        loop.close()


def eventually(condition: Callable[[], bool], seconds: float = LIMIT) -> bool:
    """Whether the condition comes true within the limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False


def generate_request(prompt: str | list[int] = "abc", **changes: Any) -> v1.GenerateRequest:
    """A short greedy request for `fake`; keywords set top-level fields."""
    request = v1.GenerateRequest(request_id=fresh_id(), model="fake")
    if isinstance(prompt, str):
        request.prompt = prompt
    else:
        request.token_ids.ids.extend(prompt)
    request.sampling.temperature = 0
    request.stopping.max_tokens = 8
    request.MergeFrom(v1.GenerateRequest(**changes))
    return request


def long_request(**changes: Any) -> v1.GenerateRequest:
    """A request that runs until the window is full."""
    request = generate_request(**changes)
    request.stopping.ClearField("max_tokens")
    request.stopping.ignore_eos = True
    return request
