"""The queue of the right worker: one decision at a time in a thread, and the stage of a test."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Kind(Enum):
    """How a request ended for the worker."""

    ANSWER = "answer"
    INVALID = "invalid"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """text: of an invalid request. depth: of the queue at admission, None when not measured."""

    kind: Kind
    body: bytes = b""
    text: str = ""
    depth: int | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """An accepted request."""

    body: bytes
    depth: int
    left: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """What a test run asked for: the fields of the stage request."""

    readiness: str = "ready"
    reason: str = ""
    work: str = "real"
    text: str = ""
    measured: bool = True
    release: bool = False


class Queue:
    """Methods that a faulty worker overrides are named for the rule that they keep."""

    capacity = 3

    def __init__(self) -> None:
        self.stage = Stage()
        self.news = threading.Condition()
        self.waiting: deque[Entry] = deque()
        self.depth = 0
        self.rejected = 0
        self.asked = 0
        self.held = 0
        self.releases = 0
        self.last: dict[str, Any] = {}
        self.closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; what waits is lost."""
        with self.news:
            self.closed = True
            self.news.notify_all()
        self._thread.join()

    def set(self, stage: Stage) -> None:
        """Replace the stage."""
        with self.news:
            self.stage = stage
            self.releases += stage.release
            self.news.notify_all()

    def submit(self, body: bytes, deadline: float) -> Entry | Outcome:
        """Admit a request, or say at once why not."""
        with self.news:
            self.asked += 1
            left = deadline - time.monotonic()
            digest = hashlib.sha256(body).hexdigest()
            self.last = {"sha256": digest, "remaining_ms": int(1000 * left)}
            match self.stage.work:
                case "busy":
                    return Outcome(Kind.BUSY)
                case "unavailable":
                    return Outcome(Kind.UNAVAILABLE)
                case "drop":
                    return Outcome(Kind.DROPPED)
            if self.depth >= self.capacity:
                self.refused()
                return Outcome(Kind.BUSY)
            self.depth += 1
            entry = Entry(body, self.depth)
            self.waiting.append(entry)
            self.news.notify_all()
            return entry

    def refused(self) -> None:
        """Count a refusal for lack of room."""
        self.rejected += 1

    def leave(self, entry: Entry) -> None:
        """The caller of an accepted request has gone, or is out of time."""
        with self.news:
            entry.left = True
            if entry in self.waiting:
                self.waiting.remove(entry)
                self.abandoned()

    def abandoned(self) -> None:
        """Count an accepted request that nobody waits for."""
        self.depth -= 1
        self.rejected += 1

    def completed(self, entry: Entry) -> None:
        """Count a request that has been decided."""
        if entry.left:
            self.abandoned()
        else:
            self.depth -= 1

    def _run(self) -> None:
        while True:
            with self.news:
                self.news.wait_for(lambda: self.waiting or self.closed)
                if self.closed:
                    return
                entry = self.waiting.popleft()
                entry.outcome = self._decided(entry)
                self.completed(entry)
            entry.done.set()

    def _decided(self, entry: Entry) -> Outcome:
        """The decision. The lock is let go only while it waits."""
        match self.stage.work:
            case "hold":
                before = self.releases
                self.held += 1
                self.news.wait_for(lambda: self.releases > before or self.closed)
                self.held -= 1
            case "invalid":
                return Outcome(Kind.INVALID, text=self.stage.text)
            case "fail":
                return Outcome(Kind.FAILED)
            case _:
                pass
        depth = entry.depth if self.stage.measured else None
        return Outcome(Kind.ANSWER, entry.body, depth=depth)
