"""The event loop of a serving process: woken once for many finished writes of gRPC, not for each.

A thread of grpc.aio puts every operation that has finished into a queue and sends the loop one
byte. The loop reads one byte and empties the whole queue, so after 32 writes in a row it wakes 31
times for nothing. Each wake gives Python's lock away twice (for epoll_wait and for recv) to the
thread that steps the engine, and then both wait for each other. Here one read takes all bytes.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from _typeshed import HasFileno

T = TypeVar("T")
Args = TypeVarTuple("Args")

# More wakes than this are read in several turns; there is one for each call at most.
MOST_WAKES = 4096


class WakeSocket(socket.socket):
    """Read for being woken only: what the bytes are does not matter, nor how many they are."""

    __slots__ = ()

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """All that is there; nothing when another loop, which shares the socket, was faster."""
        try:
            return super().recv(max(bufsize, MOST_WAKES), flags)
        except BlockingIOError:
            # The caller looks into its queue whatever it has read.
            return b""


class ServingLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, but for the socket with which grpc.aio wakes it."""

    def add_reader(
        self, fd: "int | HasFileno", callback: Callable[[*Args], Any], *args: *Args
    ) -> None:
        """Watch a file. An operation is queued before its byte is sent: none can be missed."""
        if type(fd) is socket.socket and _of_grpc(callback):
            # grpc reads through this very object, which no option of its own reaches.
            fd.__class__ = WakeSocket
        super().add_reader(fd, callback, *args)


def serve(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run on such a loop."""
    with asyncio.Runner(loop_factory=ServingLoop) as runner:
        return runner.run(main)


def _of_grpc(callback: Callable[..., Any]) -> bool:
    """Whether it is a method of grpc's completion queue, which is passed as a partial."""
    method = getattr(callback, "func", callback)
    return type(getattr(method, "__self__", None)).__name__ == "PollerCompletionQueue"
