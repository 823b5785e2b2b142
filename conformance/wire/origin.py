"""Tells a status that the engine sent from one that the gRPC library made up on the client.

grpcio shows no difference in its API: since 1.60 or so `debug_error_string()` no longer names the
peer, and it never returns for a call that was cancelled here. What is left is when the call
ended, what the client did, and the fixed texts of the library.
"""

from __future__ import annotations

import grpc

from conformance.wire.target import legal_metadata
from conformance.wire.transcript import Metadata, Origin

# The client's own timer can fire this much before the deadline as we measure it, in seconds.
TIMER_SLACK = 0.05

_LOST_CONNECTION = (
    "failed to connect to all addresses",
    "errors resolving ",
    "DNS resolution failed",
    "Name resolution",
    "empty address list",
    "Socket closed",
    "recvmsg:",
    "sendmsg:",
    "Connection reset",
    "Connection dropped",
    "connection reset",
    "Broken pipe",
    "Stream removed",
    "GOAWAY ",
    "Endpoint read failed",
    "Transport closed",
    "Transport destroyed",
    "Channel shutdown",
    "ping timeout",
    "keepalive ",
    "Keepalive ",
    "Cannot check peer",
)


def origin_of(
    code: grpc.StatusCode,
    details: str,
    *,
    seconds: float,
    deadline: float | None,
    cancelled: bool,
    metadata: Metadata,
) -> Origin:
    """Who made this status.

    seconds: when the call ended, since its start. deadline: seconds allowed. cancelled: whether
    the client cancelled it. Where both are possible the answer is LOCAL, because a status blamed
    on the engine by mistake would be a false red.
    """
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        local = deadline is not None and seconds >= deadline - TIMER_SLACK
    elif code is grpc.StatusCode.CANCELLED:
        local = cancelled
    elif code is grpc.StatusCode.INTERNAL:
        local = details == "Invalid metadata" and not legal_metadata(metadata)
    elif code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        local = details.startswith("CLIENT:")
    elif code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN}:
        local = details.startswith(_LOST_CONNECTION)
    else:
        local = False
    return Origin.LOCAL if local else Origin.REMOTE
