"""Pausing, resuming and emptying caches: one operation at a time, on all ranks or on none."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import grpc

from oe_wire import v1
from reference_engine.engine.operation import Operation
from reference_engine.engine.stream import Stream
from reference_engine.errors import AdminError
from reference_engine.server.admin_record import AdminRecord
from reference_engine.server.frontend import Frontend
from reference_engine.server.pause import Phase
from reference_engine.server.rejection import UNAVAILABLE, Rejection

# An operation is carried out between two steps; this is far above the longest step.
OPERATION_SECONDS = 20.0
# Enough to write the last message of each aborted request; who does not read is not waited for.
LAST_MESSAGE_SECONDS = 2.0

INJECTED = "the operation failed: a fault of a test run"

BUSY = Rejection(
    grpc.StatusCode.ABORTED, 0, "another admin operation is in progress", retryable=True
)
OTHER_MODE = Rejection(
    grpc.StatusCode.FAILED_PRECONDITION,
    v1.ERROR_CODE_ROLE_MISMATCH,
    "generation is paused in another mode, expected that mode or a resumed engine",
)
WAITED_TOO_LONG = Rejection(
    grpc.StatusCode.DEADLINE_EXCEEDED,
    0,
    "requests still ran after timeout_ms, so generation goes on",
    retryable=True,
)


class Administration:
    """What OpenEngineAdmin does. Used on the event loop's thread only.

    An operation that fails, or whose caller goes away, is undone: the engine runs, or stays
    paused, as before. on_change: called when the engine has begun or ceased to take requests.
    """

    def __init__(self, frontend: Frontend, on_change: Callable[[], None]) -> None:
        self._frontend = frontend
        self._on_change = on_change
        self._record = AdminRecord(frontend)
        self._busy = False
        frontend.table.on_change = self._record.note

    def state(self) -> v1.AdminState:
        """As it is at this moment."""
        return self._record.message()

    async def pause(
        self, mode: int, *, clear_cache: bool, seconds: float | None
    ) -> Rejection | None:
        """Pause in a mode, within so many seconds if they are given; why not, if so."""
        pause = self._frontend.pause
        problem = self._problem()
        if problem is None and pause.closed and pause.mode != mode:
            problem = OTHER_MODE
        if problem is not None:
            return problem
        try:
            with self._exclusively():
                if not pause.closed:
                    async with asyncio.timeout(seconds):
                        await self._pause(mode, clear_cache=clear_cache)
                elif clear_cache:
                    await self._operate(Operation.CLEAR_CACHE)
        except TimeoutError:
            return WAITED_TOO_LONG
        except AdminError as error:
            return _failure(error)
        return None

    async def resume(self) -> Rejection | None:
        """Let everything run; why not, if so."""
        problem = self._problem()
        if problem is not None or not self._frontend.pause.closed:
            return problem
        try:
            with self._exclusively():
                await self._resume()
        except AdminError as error:
            return _failure(error)
        return None

    async def clear_cache(self) -> Rejection | None:
        """Empty the prefix cache, but for what sequences hold; why not, if so."""
        problem = self._problem()
        if problem is not None:
            return problem
        try:
            with self._exclusively():
                await self._operate(Operation.CLEAR_CACHE)
        except AdminError as error:
            return _failure(error)
        return None

    def _problem(self) -> Rejection | None:
        if self._frontend.draining:
            return UNAVAILABLE
        return BUSY if self._busy else None

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    async def _pause(self, mode: int, *, clear_cache: bool) -> None:
        engine = self._frontend.engine
        older = frozenset(self._frontend.table.streams())
        self._enter(Phase.PAUSING, older=older)
        try:
            if mode == v1.PAUSE_MODE_WAIT:
                await self._operate(Operation.HOLD_NEW)
                await self._frontend.table.ended(older)
            await self._operate(Operation.HOLD_ALL)
            if mode == v1.PAUSE_MODE_ABORT:
                await self._abort(older)
            if clear_cache:
                await self._operate(Operation.CLEAR_CACHE)
        except BaseException:
            engine.tell(Operation.RELEASE)
            self._enter(Phase.RUNNING)
            raise
        self._enter(Phase.PAUSED, mode, older)

    async def _resume(self) -> None:
        try:
            await self._operate(Operation.RELEASE)
        except BaseException:
            self._frontend.engine.tell(Operation.HOLD_ALL)
            raise
        self._enter(Phase.RUNNING)

    async def _abort(self, streams: frozenset[Stream]) -> None:
        frontend = self._frontend
        with _within_limit():
            async with asyncio.timeout(OPERATION_SECONDS):
                await asyncio.gather(*map(frontend.engine.abort, streams))
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_MESSAGE_SECONDS):
                await frontend.table.ended(streams)

    async def _operate(self, operation: Operation) -> None:
        failing = self._frontend.faults.take(v1.FAULT_KIND_WORKER_FAILS) is not None
        with _within_limit():
            async with asyncio.timeout(OPERATION_SECONDS):
                await self._frontend.engine.operate(operation, INJECTED if failing else None)

    def _enter(
        self,
        phase: Phase,
        mode: int = v1.PAUSE_MODE_UNSPECIFIED,
        older: frozenset[Stream] = frozenset(),
    ) -> None:
        pause = self._frontend.pause
        pause.phase, pause.mode, pause.older = phase, mode, older
        self._record.note()
        self._on_change()


@contextmanager
def _within_limit() -> Iterator[None]:
    """Tell a worker that does not answer from a caller's own time limit."""
    try:
        yield
    except TimeoutError:
        raise AdminError(
            f"the engine did not take the operation within {OPERATION_SECONDS:.0f} s"
        ) from None


def _failure(error: AdminError) -> Rejection:
    return Rejection(grpc.StatusCode.INTERNAL, v1.ERROR_CODE_INTERNAL, str(error))
