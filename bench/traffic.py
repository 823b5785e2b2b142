"""Requests that end in every way that there is, the same ones in every run."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc

from bench.served import Served
from conformance.wire.connection import Connection
from conformance.wire.target import Target, parse_address
from oe_wire import v1
from oe_wire.services import METHODS

GENERATE = METHODS["openengine.v1.Inference/Generate"]
ABORT = METHODS["openengine.v1.Control/Abort"]
CALL_SECONDS = 60.0
# Ways that a request may end: at its limit, by an Abort, by the client's cancellation, refused.
ORDERLY = ("read", "read", "read", "abort", "cancel", "refused")
# And by bytes that are no request, a connection that is lost, a client that does not read.
ABUSIVE = (*ORDERLY, "malformed", "malformed", "lost", "stalled")
_EXPECTED = {
    "cancel": ("CANCELLED", "OK"),
    "refused": ("INVALID_ARGUMENT",),
    "malformed": ("INVALID_ARGUMENT",),
    "lost": ("CANCELLED", "OK"),
}


class Client:
    """Makes requests; the number of one decides what it asks for and how it ends."""

    def __init__(self, served: Served, channel: grpc.Channel, ways: tuple[str, ...]) -> None:
        self._served = served
        self._ways = ways
        self._generate = _method(channel, GENERATE)
        self._abort = _method(channel, ABORT)
        self._raw = channel.unary_stream(GENERATE.path, None, None)

    def request(self, number: int) -> str:
        """Make one request; its way. Raises RuntimeError when it ended otherwise."""
        choice = random.Random(number)  # noqa: S311  # reproducible, not secret
        request = self._request(number, choice)
        way = choice.choice(self._ways)
        if way in ("abort", "cancel", "lost", "stalled"):
            request.stopping.max_tokens = 200
            request.stopping.ignore_eos = True
        if way == "refused":
            request.sampling.top_p = 2.0
        code = self._made(way, request, choice)
        if code not in _EXPECTED.get(way, ("OK",)):
            raise RuntimeError(f"request {number} ({way}) ended with {code}")
        return way

    def _request(self, number: int, choice: random.Random) -> v1.GenerateRequest:
        request = v1.GenerateRequest(request_id=f"r{number}", model=self._served.model)
        request.token_ids.ids.extend(choice.choices(range(300, 900), k=choice.randint(1, 64)))
        request.stopping.max_tokens = choice.randint(1, 12)
        request.sampling.num_sequences = choice.choice((1, 1, 1, 3))
        request.response.return_output_logprobs = choice.random() < 0.2
        return request

    def _made(self, way: str, request: v1.GenerateRequest, choice: random.Random) -> str:
        if way == "malformed":
            return _code(self._raw(choice.randbytes(64), timeout=CALL_SECONDS))
        if way == "lost":
            return self._lost(request)
        if way == "stalled":
            return self._stalled(request)
        call = self._generate(request, timeout=CALL_SECONDS)
        with suppress(grpc.RpcError):
            if way in ("abort", "cancel"):
                next(call)
            if way == "abort":
                self._abort(v1.AbortRequest(request_id=request.request_id), timeout=CALL_SECONDS)
            if way == "cancel":
                call.cancel()
        return _code(call)

    def _lost(self, request: v1.GenerateRequest) -> str:
        """Close the connection under a running stream."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.insecure_channel(self._served.address, options)
        call = _method(channel, GENERATE)(request, timeout=CALL_SECONDS)
        with suppress(grpc.RpcError):
            next(call)
        channel.close()
        return _code(call)

    def _stalled(self, request: v1.GenerateRequest) -> str:
        """Stop reading until the engine has given the stream up, or is done with it."""
        target = Target(parse_address(self._served.address))
        with Connection(target) as connection:
            call = connection.start_slow(GENERATE, request, deadline=CALL_SECONDS)
            call.wait_event(1)
            call.stall()
            call.wait_end(self._served.stall_seconds * 2)
            call.resume()
            return call.finish().ending.code.name


def _code(call: Any) -> str:
    with suppress(grpc.RpcError):
        for _ in call:
            pass
    return str(call.code().name)


def _method(channel: grpc.Channel, method: Any) -> Callable[..., Any]:
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    return kind(method.path, method.request.SerializeToString, method.response.FromString)
