"""Calls with bytes that no right client sends, each under a deadline of its own.

Some servers never answer such calls (grpcio's aio server hangs when no message comes), so a
missing answer is a normal outcome here: DEADLINE_EXCEEDED with origin LOCAL.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.wire.connection import Connection
from conformance.wire.transcript import Metadata, Transcript
from oe_wire.services import Method


def raw_call(
    connection: Connection,
    method: Method,
    messages: Sequence[bytes],
    *,
    metadata: Metadata = (),
    deadline: float,
) -> Transcript:
    """Send these messages (0, 1 or more, any bytes) and wait at most `deadline` seconds.

    The transcript's request is None unless exactly one message was sent and it parses.
    """
    if len(messages) == 1:
        return connection.call(method, messages[0], metadata=metadata, deadline=deadline)
    return connection.start_raw(method, messages, metadata=metadata, deadline=deadline).finish()
