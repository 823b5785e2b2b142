"""The loop that is woken once for many operations of gRPC."""

import asyncio
import socket
from collections.abc import Iterator
from functools import partial

import grpc
import pytest

from reference_engine.server.serving_loop import ServingLoop, WakeSocket, serve


class PollerCompletionQueue:
    """Handles what is done as grpc.aio does: one byte is read, the whole queue is emptied."""

    def __init__(self, woken: socket.socket, waker: socket.socket) -> None:
        self._woken = woken
        self._waker = waker
        self._done: list[int] = []
        self.handled: list[list[int]] = []

    def put(self, operation: int) -> None:
        self._done.append(operation)
        self._waker.send(b"1")

    def _handle_events(self, _loop: asyncio.AbstractEventLoop) -> None:
        self._woken.recv(1)
        self.handled.append(self._done[:])
        self._done.clear()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_reader(self._woken, partial(self._handle_events, loop))


@pytest.fixture
def queue() -> Iterator[PollerCompletionQueue]:
    woken, waker = socket.socketpair()
    with woken, waker:
        woken.settimeout(0)
        yield PollerCompletionQueue(woken, waker)


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_many_operations_are_one_wake(queue):
    """Whatever was done before the loop looks is handled at once, and what comes later as well."""

    async def main() -> None:
        queue.bind(asyncio.get_running_loop())
        for operation in range(5):
            queue.put(operation)
        await _turns(10)
        queue.put(5)
        await _turns(10)

    serve(main())
    assert queue.handled == [[0, 1, 2, 3, 4], [5]]


def test_a_wake_that_another_loop_has_read(queue):
    """The queue is looked into all the same; a plain socket raises into the loop."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        queue.bind(loop)
        queue._handle_events(loop)

    serve(main())
    assert queue.handled == [[]]


def test_the_socket_of_grpc_is_known():
    """This version of grpc.aio wakes the loop through a socket that the loop can replace."""
    watched: list[type] = []

    class SeenLoop(ServingLoop):
        def add_reader(self, fd, callback, *args):
            super().add_reader(fd, callback, *args)
            watched.append(type(fd))

    async def main() -> None:
        server = grpc.aio.server()
        await server.start()
        await server.stop(0)

    with asyncio.Runner(loop_factory=SeenLoop) as runner:
        runner.run(main())
    assert watched == [WakeSocket]


def test_sockets_of_others_are_left_alone():
    """Only the bytes of gRPC's mean nothing."""
    woken, waker = socket.socketpair()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(woken, woken.recv, 1)
        loop.remove_reader(woken)

    with woken, waker:
        serve(main())
        assert type(woken) is socket.socket
