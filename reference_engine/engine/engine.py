"""The engine thread: takes requests from an event loop, runs steps, hands events back.

Commands go through one inbox and are applied between two steps; what a step produced goes back
in one hand-over, because a wake-up of the loop costs more than an event.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from reference_engine.engine.core import Emitted, EngineCore, OpenRequest
from reference_engine.engine.guard import BROKEN, ENDED, FAULT, Guard
from reference_engine.engine.load import LoadSnapshot
from reference_engine.engine.operation import Operation
from reference_engine.engine.output import Event, RequestFailed, is_last
from reference_engine.engine.request import Request
from reference_engine.engine.stream import Stream
from reference_engine.errors import EngineException
from reference_engine.lora.low_rank import AdapterWeights

log = logging.getLogger(__name__)

Command = Callable[[], list[Emitted]]
Answer = TypeVar("Answer")


class Engine:
    """All methods but `stop` are for the thread of the event loop that called `start`."""

    def __init__(self, core: EngineCore, max_open: int) -> None:
        self._core = core
        self._guard = Guard(core)
        self._failing = False
        self._max_open = max_open
        self._inbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._stopping = False
        self._ended = False
        self._on_change: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams: dict[OpenRequest, Stream] = {}
        self._num_open = 0
        self._unwedged = threading.Event()

    def start(self, on_change: Callable[[], None]) -> None:
        """Start the thread. Events go to the running event loop, and so does on_change when
        `healthy` has changed.
        """
        self._loop = asyncio.get_running_loop()
        self._on_change = on_change
        self._thread.start()

    def stop(self) -> None:
        """Abort what is open and end the thread. Blocks until its step is over."""
        self._inbox.put(self._stop)
        self._unwedged.set()
        self._thread.join()

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
        return self._num_open

    @property
    def load(self) -> LoadSnapshot:
        """How busy the engine is now. Any thread may ask; no step waits for it."""
        return self._core.load

    @property
    def has_room(self) -> bool:
        """Whether one more request is within the limits."""
        return self._num_open < self._max_open

    def submit(self, request: Request, fail_after: int | None = None) -> Stream:
        """Queue a request. The caller checks `alive`, `has_room` and the window before.

        fail_after: tokens after which it fails, in a test of that.
        """
        stream = Stream(request, self._resume)
        self._num_open += 1
        self._inbox.put(lambda: self._add(stream, fail_after))
        return stream

    def fail_after(self, stream: Stream, tokens: int | None) -> None:
        """Let a request fail after so many tokens, or not any more."""
        self._inbox.put(lambda: self._fail_after(stream, tokens))

    def operate(self, operation: Operation, fault: str | None = None) -> asyncio.Future[str | None]:
        """Begin an operation between two steps; its result is why it failed, None if it did not.

        fault: what it shall fail with, in a test of that.
        """
        answer: asyncio.Future[str | None] = self._running_loop().create_future()
        if self._ended:
            answer.set_result(ENDED)
        else:
            self._inbox.put(lambda: self._operate(operation, fault, answer))
        return answer

    def wedge(self, seconds: float | None) -> None:
        """Let the thread do nothing for so long, or until `unwedge`."""
        self._unwedged.clear()
        self._inbox.put(lambda: self._wedge(seconds))

    def unwedge(self) -> None:
        """Let the thread go on."""
        self._unwedged.set()

    def put_adapter(self, key: str, weights: AdapterWeights) -> None:
        """Add an adapter to memory, before any request that is submitted later."""
        self._inbox.put(lambda: self._core.put_adapter(key, weights))

    def drop_adapter(self, key: str) -> None:
        """Forget an adapter, after any request that was cancelled before."""
        self._inbox.put(lambda: self._core.drop_adapter(key))

    def cancel(self, stream: Stream) -> None:
        """Drop a request whose reader has gone; nothing happens if it has ended."""
        self._inbox.put(lambda: self._abort(stream, None))

    def _park(self, stream: Stream) -> None:
        """Set a request aside until its reader has caught up."""
        self._inbox.put(lambda: self._set_aside(stream, aside=True))

    def _resume(self, stream: Stream) -> None:
        self._inbox.put(lambda: self._set_aside(stream, aside=False))

    async def abort(self, stream: Stream) -> bool:
        """End a request as CANCELLED; False if it had ended on its own before."""
        if not self.alive:
            return False
        answer: asyncio.Future[bool] = self._running_loop().create_future()
        self._inbox.put(lambda: self._abort(stream, answer))
        return await answer

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise EngineException("the engine was not started")
        return self._loop

    # From here on: the engine thread.

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._take_commands(wait=not self._core.busy)
                if self._core.busy:
                    self._deliver(self._guard.step())
                    self._tell_health()
        finally:
            if not self._stopping:
                log.critical("the engine thread ends; nothing is computed from here on")
            self._running_loop().call_soon_threadsafe(self._end)

    def _take_commands(self, *, wait: bool) -> None:
        """Apply what is in the inbox; with `wait`, block for the first command."""
        while True:
            try:
                command = self._inbox.get(block=wait)
            except queue.Empty:
                return
            self._deliver(self._guard.apply(command))
            wait = False

    def _tell_health(self) -> None:
        if self._guard.failing != self._failing:
            self._running_loop().call_soon_threadsafe(self._set_failing, self._guard.failing)

    def _add(self, stream: Stream, fail_after: int | None) -> list[Emitted]:
        stream.opened = self._core.add(stream.request, fail_after)
        self._streams[stream.opened] = stream
        return []

    def _fail_after(self, stream: Stream, tokens: int | None) -> list[Emitted]:
        if stream.opened is not None:
            stream.opened.fail_after = tokens
        return []

    def _operate(
        self, operation: Operation, fault: str | None, answer: asyncio.Future[str | None]
    ) -> list[Emitted]:
        failure: str | None = BROKEN
        try:
            events = self._core.operate(operation) if fault is None else []
            failure = fault
        finally:
            self._answer(answer, failure)
        return events

    def _wedge(self, seconds: float | None) -> list[Emitted]:
        if not self._stopping:
            self._unwedged.wait(seconds)
        return []

    def _abort(self, stream: Stream, answer: asyncio.Future[bool] | None) -> list[Emitted]:
        events = self._core.abort(stream.opened) if stream.opened is not None else []
        self._answer(answer, bool(events))
        return events

    def _set_aside(self, stream: Stream, *, aside: bool) -> list[Emitted]:
        if stream.opened is not None:
            (self._core.park if aside else self._core.resume)(stream.opened)
        return []

    def _stop(self) -> list[Emitted]:
        self._stopping = True
        return self._core.abort_all()

    def _answer(self, answer: asyncio.Future[Answer] | None, value: Answer) -> None:
        if answer is not None:
            self._running_loop().call_soon_threadsafe(_resolve, answer, value)

    def _deliver(self, events: list[Emitted]) -> None:
        if not events:
            return
        batch = [(self._streams[opened], event) for opened, event in events]
        for opened, event in events:
            if isinstance(event, RequestFailed) or not opened.num_open:
                self._streams.pop(opened, None)
        self._running_loop().call_soon_threadsafe(self._hand_over, batch)

    # On the event loop again.

    def _end(self) -> None:
        """The thread has let go of the core: answer what still lies in the inbox, fail the rest.

        Commands are put on this thread too, so none can come after `alive` has turned False.
        """
        self._ended = True
        self._unwedged.set()
        self._take_commands(wait=False)
        self._deliver(self._core.fail_all(FAULT))
        self._on_change()

    def _set_failing(self, failing: bool) -> None:
        self._failing = failing
        self._on_change()

    def _hand_over(self, batch: list[tuple[Stream, Event]]) -> None:
        """Give each reader its events."""
        for stream, event in batch:
            if is_last(event):
                self._num_open -= 1
            if stream.put(event):
                self._park(stream)


def _resolve(answer: asyncio.Future[Answer], value: Answer) -> None:
    """Set the answer unless the asker has gone."""
    if not answer.done():
        answer.set_result(value)
