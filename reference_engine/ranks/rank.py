"""The server's end of a rank process: the same calls as for an engine in this process."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from reference_engine.engine.guard import ENDED, FAULT
from reference_engine.engine.load import LoadSnapshot
from reference_engine.engine.operation import Operation
from reference_engine.engine.output import Event, RequestFailed, is_last
from reference_engine.engine.request import Request
from reference_engine.engine.stream import Stream
from reference_engine.errors import EngineException
from reference_engine.lora.low_rank import AdapterWeights, to_arrays
from reference_engine.ranks.message import (
    Abort,
    Add,
    Command,
    DropAdapter,
    FailAfter,
    Operate,
    Progress,
    PutAdapter,
    SetAside,
    Stop,
    Unwedge,
    Wedge,
)

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

# A rank takes commands between two steps; one that does not by then is stuck.
STOP_SECONDS = 20.0


class Rank:
    """All methods but `stop` are for the thread of the event loop that called `start`.

    Two threads move messages, because a pipe that is full would block the event loop.
    """

    def __init__(
        self, process: BaseProcess, connection: Connection, load: LoadSnapshot, max_open: int
    ) -> None:
        self.load = load
        self._process = process
        self._connection = connection
        self._max_open = max_open
        self._outbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"{process.name}-in", daemon=True)
        self._writer = threading.Thread(target=self._write, name=f"{process.name}-out", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_change: Callable[[], None] = lambda: None
        self._ended = False
        self._stopping = False
        self._failing = False
        self._next = 0
        self._streams: dict[int, Stream] = {}
        self._numbers: dict[Stream, int] = {}
        self._answers: dict[int, asyncio.Future[bool]] = {}
        self._outcomes: dict[int, asyncio.Future[str | None]] = {}

    def start(self, on_change: Callable[[], None]) -> None:
        """Start to listen. on_change is called on the running event loop when `healthy` has
        changed.
        """
        self._loop = asyncio.get_running_loop()
        self._on_change = on_change
        self._reader.start()
        self._writer.start()

    def stop(self) -> None:
        """Abort what is open and end the process; kill it if it does not end. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        if self._loop is None:
            self._process.kill()
        self._outbox.put(Stop())
        self._outbox.put(None)
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            log.error("%s does not stop and is killed", self._process.name)
            self._process.kill()
            self._process.join()
        for thread in (self._reader, self._writer):
            if thread.ident is not None:
                thread.join()
        self._connection.close()

    @property
    def pid(self) -> int | None:
        """Of the rank's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether requests are computed."""
        return self._loop is not None and not self._ended

    @property
    def healthy(self) -> bool:
        """Whether a request can be expected to succeed: not when the latest steps all threw."""
        return self.alive and not self._failing

    @property
    def num_open(self) -> int:
        """Requests whose last event has not been delivered."""
        return len(self._streams)

    @property
    def has_room(self) -> bool:
        """Whether one more request is within the limits."""
        return self.num_open < self._max_open

    def submit(self, request: Request, fail_after: int | None = None) -> Stream:
        """Queue a request. The caller checks `alive`, `has_room` and the window before.

        fail_after: tokens after which it fails, in a test of that.
        """
        stream = Stream(request, self._resume)
        number = self._number()
        self._streams[number] = stream
        self._numbers[stream] = number
        self._outbox.put(Add(number, request, fail_after))
        return stream

    def fail_after(self, stream: Stream, tokens: int | None) -> None:
        """Let a request fail after so many tokens, or not any more."""
        if stream in self._numbers:
            self._outbox.put(FailAfter(self._numbers[stream], tokens))

    def operate(self, operation: Operation, fault: str | None = None) -> asyncio.Future[str | None]:
        """Begin an operation between two steps; its result is why it failed, None if it did not.

        fault: what it shall fail with, in a test of that.
        """
        answer: asyncio.Future[str | None] = self._running_loop().create_future()
        if self._ended:
            answer.set_result(ENDED)
        else:
            number = self._number()
            self._outcomes[number] = answer
            self._outbox.put(Operate(operation, number, fault))
        return answer

    def wedge(self, seconds: float | None) -> None:
        """Let the process do nothing for so long, or until `unwedge`."""
        self._outbox.put(Wedge(seconds))

    def unwedge(self) -> None:
        """Let the process go on."""
        self._outbox.put(Unwedge())

    def put_adapter(self, key: str, weights: AdapterWeights) -> None:
        """Add an adapter to memory, before any request that is submitted later."""
        self._outbox.put(PutAdapter(key, to_arrays(weights)))

    def drop_adapter(self, key: str) -> None:
        """Forget an adapter, after any request that was cancelled before."""
        self._outbox.put(DropAdapter(key))

    def cancel(self, stream: Stream) -> None:
        """Drop a request whose reader has gone; nothing happens if it has ended."""
        if stream in self._numbers:
            self._outbox.put(Abort(self._numbers[stream]))

    async def abort(self, stream: Stream) -> bool:
        """End a request as CANCELLED; False if it had ended on its own before."""
        if not self.alive or stream not in self._numbers:
            return False
        answer: asyncio.Future[bool] = self._running_loop().create_future()
        number = self._number()
        self._answers[number] = answer
        self._outbox.put(Abort(self._numbers[stream], number))
        return await answer

    def _resume(self, stream: Stream) -> None:
        if stream in self._numbers:
            self._outbox.put(SetAside(self._numbers[stream], aside=False))

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise EngineException("the rank was not started")
        return self._loop

    # The two threads.

    def _write(self) -> None:
        try:
            for command in iter(self._outbox.get, None):
                self._connection.send(command)
        except OSError:
            # The reader notices the same and says so.
            log.debug("%s takes no more commands", self._process.name)

    def _read(self) -> None:
        loop = self._running_loop()
        try:
            while True:
                loop.call_soon_threadsafe(self._take, self._connection.recv())
        except (EOFError, OSError):
            if not self._stopping:
                log.critical("%s has ended; nothing is computed there", self._process.name)
        finally:
            # Lets the writer end too.
            self._outbox.put(None)
            loop.call_soon_threadsafe(self._end)

    # On the event loop again.

    def _take(self, progress: Progress) -> None:
        """Give each reader its events, and each asker its answer."""
        self.load = progress.load
        for number, event in progress.events:
            self._hand_over(number, event)
        for number, aborted in progress.answers:
            _resolve(self._answers.pop(number), aborted)
        for number, failure in progress.outcomes:
            _resolve(self._outcomes.pop(number), failure)
        if self._failing != progress.failing:
            self._failing = progress.failing
            self._on_change()

    def _hand_over(self, number: int, event: Event) -> None:
        stream = self._streams[number]
        if is_last(event):
            del self._streams[number]
            del self._numbers[stream]
        if stream.put(event):
            self._outbox.put(SetAside(number, aside=True))

    def _end(self) -> None:
        """The process has gone: what it had is lost."""
        self._ended = True
        for number, stream in tuple(self._streams.items()):
            self._hand_over(number, RequestFailed(FAULT, stream.usage()))
        for answer in self._answers.values():
            _resolve(answer, False)  # noqa: FBT003 - an answer like any other
        self._answers.clear()
        for outcome in self._outcomes.values():
            _resolve(outcome, ENDED)
        self._outcomes.clear()
        self.load = LoadSnapshot(total_blocks=self.load.total_blocks)
        self._on_change()


def _resolve(asked: asyncio.Future[Answer], answer: Answer) -> None:
    """Set the answer unless the asker has gone."""
    if not asked.done():
        asked.set_result(answer)
