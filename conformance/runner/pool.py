"""Runs the checks of a plan in worker threads: shared ones side by side, exclusive ones alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.checks.base import Interrupted
from conformance.checks.check import Check
from conformance.runner.events import CheckFinished, CheckStarted, Listener
from conformance.runner.opened import Link, Opened
from conformance.runner.plan import Row
from conformance.runner.result import CheckResult


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
    _crash: BaseException | None = None

    def run(self, rows: Sequence[Row], jobs: int) -> None:
        """Judge every row; returns when all are done or the session is stopped. Beside several
        jobs, checks that mostly wait have a worker of their own: they cost the target nothing.
        """
        shared = [row for row in rows if not row.exclusive]
        apart = jobs > 1
        waiting = [row for row in shared if apart and _waits(row)]
        working = [row for row in shared if not (apart and _waits(row))]
        self._run((waiting, 1), (working, jobs))
        self._run(([row for row in rows if row.exclusive], 1))

    def stop(self) -> None:
        """End every running check and cancel its calls on the target."""
        self.session.stop.set()
        with self._lock:
            for connection in self._connections:
                connection.cancel_all()

    def _run(self, *shares: tuple[Sequence[Row], int]) -> None:
        """Judge lists of rows side by side, each with that many workers."""
        workers = [worker for rows, jobs in shares for worker in self._workers(rows, jobs)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            self.stop()
            for worker in workers:
                worker.join()
            raise
        if self._crash is not None:
            raise self._crash

    def _workers(self, rows: Sequence[Row], jobs: int) -> list[threading.Thread]:
        waiting: queue.SimpleQueue[Row] = queue.SimpleQueue()
        for row in rows:
            waiting.put(row)
        return [
            threading.Thread(target=self._work, args=(waiting,), name=f"check-{number}")
            for number in range(min(jobs, len(rows)))
        ]

    def _work(self, waiting: queue.SimpleQueue[Row]) -> None:
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
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that joins
            self._crash = error
            self.session.stop.set()
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


def _waits(row: Row) -> bool:
    return row.check is not None and row.check.waits > 0
