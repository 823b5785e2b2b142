"""A call whose reader can stop reading, so that the server is held up by flow control.

An ordinary call takes every message at once; this one leaves them on the wire while it is
stalled. grpcio asks for a message only when its iterator is advanced, and a connection with a
window of WINDOW_BYTES for each stream soon lets the server write nothing more. Measured with
grpcio 1.85: 210 bytes were written to a stalled reader with this window, and 4 MiB with the
library's defaults, because it widens windows by what the network could carry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import grpc

from conformance.wire.live_call import GrpcCall, LiveCall, Outgoing
from conformance.wire.transcript import ActionKind

# Room for two or three small messages, so that a stall is felt at once.
WINDOW_BYTES = 256
# The library widens a window while messages are larger than it, never by more than they need.
SLOW_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
)


class Watched(GrpcCall, Protocol):
    """A call of grpcio that tells when it is over."""

    def __next__(self) -> bytes: ...
    def add_done_callback(self, callback: Callable[[Any], None]) -> None: ...


class Valve:
    """A call's messages, taken from the wire only while it is open. It opens for good when the
    call is over, because then there is nothing left to wait for.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = True
        self._over = False
        self._call: Watched

    def on(self, call: Watched) -> Valve:
        """Put it on this call."""
        self._call = call
        call.add_done_callback(self._end)
        return self

    def turn(self, *, to_open: bool) -> None:
        """Open or close it."""
        with self._changed:
            self._open = to_open
            self._changed.notify_all()

    def _end(self, _: Any) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._open or self._over)
        return next(self._call)

    def cancel(self) -> Any:
        """As grpcio's."""
        return self._call.cancel()

    def code(self) -> grpc.StatusCode:
        """As grpcio's."""
        return self._call.code()

    def details(self) -> str | None:
        """As grpcio's."""
        return self._call.details()

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """As grpcio's."""
        return self._call.trailing_metadata()


class SlowCall(LiveCall):
    """A running call that can be stalled. It reads until it is told to stop.

    The end of a call lies behind its messages: a stalled call does not see it before it resumes,
    except when the client itself cancels or its deadline passes.
    """

    def __init__(self, outgoing: Outgoing, begin: Callable[[], Watched] | None) -> None:
        """Start the call with `begin`, on a channel with SLOW_OPTIONS; None makes one that was
        cancelled before it began.
        """
        self._valve = Valve()
        super().__init__(outgoing, None if begin is None else lambda: self._valve.on(begin()))

    def stall(self) -> None:
        """Note STALL and stop reading. One more message may arrive: the one that was already
        asked for.
        """
        self.act(ActionKind.STALL)
        self._valve.turn(to_open=False)

    def resume(self) -> None:
        """Read on."""
        self._valve.turn(to_open=True)
