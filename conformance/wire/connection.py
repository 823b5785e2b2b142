"""The channels of one worker to the engine, one per listener, and every call made on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import grpc
from google.protobuf.message import DecodeError, Message

from conformance.errors import HarnessError
from conformance.wire.live_call import GRACE, GrpcCall, LiveCall, Outgoing
from conformance.wire.single_service import single_path
from conformance.wire.slow_call import SLOW_OPTIONS, SlowCall, Watched
from conformance.wire.target import Target
from conformance.wire.transcript import Metadata, Transcript
from oe_wire.services import Method

# Services that carry requests to models; all others may lie on a control listener.
DATA_PLANE = frozenset(
    {
        "openengine.v1.Inference",
        "openengine.v1.OpenEngineTasks",
        "openengine.v1.OpenEngineEncoder",
    }
)
# Single data-plane RPCs of services that otherwise belong to the control plane.
DATA_PLANE_RPCS = frozenset(
    {
        "openengine.v1.OpenEngineSessions/GenerateTurn",
        "openengine.v1.OpenEngineKv/Prefill",
        "openengine.v1.OpenEngineOrchestration/Execute",
    }
)

# No keepalive: servers answer frequent pings with GOAWAY. No retries and no HTTP proxy: both
# would change what the engine is seen to do. A subchannel pool of its own: otherwise the channels
# of all workers share one connection. Metadata up to 1 MiB: refusing it here would hide it.
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 1 << 20),
    ("grpc.absolute_max_metadata_size", 1 << 20),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


def address_of(target: Target, routes: Mapping[str, str], method: str) -> str:
    """The listener that serves the RPC `package.Service/Rpc`.

    A control listener goes before routes, for every RPC outside the data plane.
    """
    service = method.partition("/")[0]
    data_plane = service in DATA_PLANE or method in DATA_PLANE_RPCS
    if target.control is not None and not data_plane:
        return target.control
    return routes.get(service, target.address)


class Connection:
    """Every call of one worker to one target.

    routes: address by service name, for services that the engine says lie elsewhere; a control
    listener of the target goes before them. Channels connect with the first call.
    """

    def __init__(self, target: Target, routes: Mapping[str, str] | None = None) -> None:
        self.target = target
        self.routes = dict(routes or {})
        self._lock = threading.Lock()
        self._channels: dict[tuple[str, bool], grpc.Channel] = {}
        self._live: set[LiveCall] = set()
        self._closed = False

    def address_of(self, method: Method) -> str:
        """The listener that serves this RPC."""
        return address_of(self.target, self.routes, method.full_name)

    def call(
        self,
        method: Method,
        request: Message | bytes,
        *,
        metadata: Metadata = (),
        deadline: float,
    ) -> Transcript:
        """Make a call and wait for its end, at most `deadline` seconds."""
        return self.start(method, request, metadata=metadata, deadline=deadline).finish()

    def start(
        self,
        method: Method,
        request: Message | bytes,
        *,
        metadata: Metadata = (),
        deadline: float,
    ) -> LiveCall:
        """Start a call and return while it runs. After `cancel_all` or `close` the call is
        cancelled before it begins and nothing is sent.
        """
        data = request if isinstance(request, bytes) else request.SerializeToString()
        parsed = _parsed(method, data) if isinstance(request, bytes) else _copied(request)
        outgoing = Outgoing(method, parsed, data, metadata, deadline)
        return self._begin(outgoing, lambda channel: self._unary(channel, outgoing))

    def start_slow(
        self,
        method: Method,
        request: Message,
        *,
        metadata: Metadata = (),
        deadline: float,
    ) -> SlowCall:
        """As `start`, for a call whose reader can stop reading."""
        outgoing = Outgoing(
            method, _copied(request), request.SerializeToString(), metadata, deadline
        )
        with self._lock:
            if self._closed:
                return SlowCall(outgoing, None)
            channel = self._channel(self.address_of(method), slow=True)
            live = SlowCall(outgoing, lambda: cast(Watched, self._unary(channel, outgoing)))
            self._note(live)
        return live

    def start_raw(
        self,
        method: Method,
        messages: Sequence[bytes],
        *,
        metadata: Metadata = (),
        deadline: float,
    ) -> LiveCall:
        """Start a call that sends exactly these messages, where a right client sends one.

        The transcript's request bytes are the messages put together, its request is None unless
        there is exactly one and it parses.
        """
        data = b"".join(messages)
        parsed = _parsed(method, data) if len(messages) == 1 else None
        outgoing = Outgoing(method, parsed, data, metadata, deadline)
        return self._begin(outgoing, lambda channel: self._stream(channel, outgoing, messages))

    def wait_ready(self, method: Method, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a connection to the listener that serves this RPC;
        whether there is one. No call is made.
        """
        with self._lock:
            if self._closed:
                return False
            channel = self._channel(self.address_of(method))
        ready = grpc.channel_ready_future(channel)
        try:
            ready.result(timeout)
        except grpc.FutureTimeoutError:
            ready.cancel()
            return False
        return True

    def cancel_all(self) -> None:
        """Cancel every running call; later calls are cancelled before they begin."""
        with self._lock:
            self._closed = True
            live = list(self._live)
        for call in live:
            call.cancel()

    def close(self) -> None:
        """Cancel what runs, wait until the calls have ended, close the channels."""
        self.cancel_all()
        for call in list(self._live):
            call.wait_end(GRACE)
        with self._lock:
            channels = list(self._channels.values())
            self._channels.clear()
            self._live.clear()
        for channel in channels:
            channel.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _begin(self, outgoing: Outgoing, begin: Callable[[grpc.Channel], GrpcCall]) -> LiveCall:
        _check_types(outgoing.metadata)
        with self._lock:
            if self._closed:
                return LiveCall(outgoing, None)
            channel = self._channel(self.address_of(outgoing.method))
            live = LiveCall(outgoing, lambda: begin(channel))
            self._note(live)
        return live

    def _note(self, live: LiveCall) -> None:
        self._live = {call for call in self._live if not call.done}
        self._live.add(live)

    def _unary(self, channel: grpc.Channel, out: Outgoing) -> GrpcCall:
        # Unary RPCs too: on the wire they are the same, and a second response stays visible.
        make = channel.unary_stream(self._path(out.method), None, None)
        return cast(
            GrpcCall,
            make(out.request_bytes, timeout=out.deadline, metadata=self._metadata(out)),
        )

    def _stream(self, channel: grpc.Channel, out: Outgoing, messages: Sequence[bytes]) -> GrpcCall:
        make = channel.stream_stream(self._path(out.method), None, None)
        return cast(
            GrpcCall, make(iter(messages), timeout=out.deadline, metadata=self._metadata(out))
        )

    def _path(self, method: Method) -> str:
        return single_path(method) if self.target.single_service else method.path

    def _metadata(self, out: Outgoing) -> Metadata:
        return self.target.metadata + out.metadata

    def _channel(self, address: str, *, slow: bool = False) -> grpc.Channel:
        channel = self._channels.get((address, slow))
        if channel is None:
            channel = open_channel(self.target, address, SLOW_OPTIONS if slow else ())
            self._channels[address, slow] = channel
        return channel


def open_channel(
    target: Target, address: str, options: Iterable[tuple[str, int | str]] = ()
) -> grpc.Channel:
    """A channel to one listener of the target; it connects with its first call."""
    all_options = [*_OPTIONS, *options]
    if target.authority is not None:
        all_options.append(("grpc.default_authority", target.authority))
    if target.tls is None:
        return grpc.insecure_channel(address, all_options)
    if target.authority is not None:
        all_options.append(("grpc.ssl_target_name_override", target.authority))
    tls = target.tls
    credentials = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.cert)
    return grpc.secure_channel(address, credentials, all_options)


def _parsed(method: Method, data: bytes) -> Message | None:
    try:
        return method.request.FromString(data)
    except DecodeError:
        return None


def _copied(request: Message) -> Message:
    """A copy, so that a transcript stays true when the caller reuses its message."""
    copy = type(request)()
    copy.CopyFrom(request)
    return copy


def _check_types(metadata: Metadata) -> None:
    for key, value in metadata:
        if key.endswith("-bin") != isinstance(value, bytes):
            kind = "bytes" if key.endswith("-bin") else "text"
            raise HarnessError(
                f"metadata {key!r} has a {type(value).__name__} value, expected {kind}"
            )
