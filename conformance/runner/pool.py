"""Runs the checks of a plan in worker threads: shared ones side by side, exclusive ones alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from conformance.checks.base import Interrupted
from conformance.checks.check import Check
from conformance.runner.events import CheckFinished, CheckStarted, Listener
from conformance.runner.opened import Link, Opened
from conformance.runner.plan import Row
from conformance.runner.result import CheckResult

_NOTICE = 0.2
"""Seconds after which Ctrl-C is noticed at the latest."""

_WAITERS = 2
"""Workers for checks that mostly wait: one of them waits about as long as all the others."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """What a thread takes its rows from, with others, and how it ended."""

    waiting: queue.SimpleQueue[Row]
    end: Future[None] = field(default_factory=Future)


@dataclass(slots=True)
class Pool:
    """Workers over one session. A check gets the same seed and budget whichever worker runs it,
    so results do not depend on how many there are.
    """

    session: Opened
    listener: Listener
    results: dict[str, CheckResult] = field(default_factory=dict)
    _connections: list[Link] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, rows: Sequence[Row], jobs: int) -> None:
        """Judge every row; returns when all are done or the session is stopped. Beside several
        jobs, checks that mostly wait have workers of their own: they cost the target nothing.
        """
        shared = [row for row in rows if not row.exclusive]
        apart = jobs > 1
        waiting = [row for row in shared if apart and _waits(row)]
        working = [row for row in shared if not (apart and _waits(row))]
        self._run((waiting, _WAITERS), (working, jobs))
        self._run(([row for row in rows if row.exclusive], 1))

    def stop(self) -> None:
        """End every running check and cancel its calls on the target."""
        self.session.stop.set()
        with self._lock:
            for connection in self._connections:
                connection.cancel_all()

    def _run(self, *shares: tuple[Sequence[Row], int]) -> None:
        """Judge lists of rows side by side, each with that many workers."""
        workers = [worker for rows, jobs in shares for worker in _workers(rows, jobs)]
        try:
            for worker in workers:
                threading.Thread(target=self._work, args=(worker,), name="check").start()
            ends = [worker.end for worker in workers]
            # A signal that the system gives to another thread does not wake this one.
            while wait(ends, timeout=_NOTICE).not_done:
                continue
        except BaseException:
            self.stop()
            wait([worker.end for worker in workers if not worker.end.cancel()])
            raise
        for worker in workers:
            worker.end.result()

    def _work(self, worker: _Worker) -> None:
        if not worker.end.set_running_or_notify_cancel():
            return
        try:
            self._judge_rows(worker.waiting)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self.session.stop.set()
            worker.end.set_exception(error)
        else:
            worker.end.set_result(None)

    def _judge_rows(self, waiting: queue.SimpleQueue[Row]) -> None:
        connection: Link = self.session.connect()
        with self._lock:
            self._connections.append(connection)
        try:
            while not self.session.stop.is_set():
                try:
                    row = waiting.get_nowait()
                except queue.Empty:
                    return
                if row.check is not None:
                    self._judge(row, row.check, connection)
        except Interrupted:
            return
        finally:
            with self._lock:
                self._connections.remove(connection)
            connection.close()

    def _judge(self, row: Row, check: Check, connection: Link) -> None:
        self._tell_started(row)
        result = self.session.judge(row, check, connection)
        with self._lock:
            self.results[row.requirement.id] = result
            self.listener(CheckFinished(result))

    def _tell_started(self, row: Row) -> None:
        with self._lock:
            self.listener(CheckStarted(row.requirement.id))


def _workers(rows: Sequence[Row], jobs: int) -> list[_Worker]:
    waiting: queue.SimpleQueue[Row] = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)
    return [_Worker(waiting) for _ in range(min(jobs, len(rows)))]


def _waits(row: Row) -> bool:
    return row.check is not None and row.check.waits > 0
