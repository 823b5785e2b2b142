"""A worker that keeps every rule of its contract; a faulty one overrides one method."""

from __future__ import annotations

import json
import time

from conformance.mutants.worker.queue import Entry, Kind, Outcome, Queue, Stage
from conformance.mutants.worker.server import (
    Arrival,
    LateError,
    Reply,
    UnreadableError,
    json_reply,
)

WORK, HEALTH, STAGE = "/v1/systemone", "/health", "/testing/worker"
BUDGET_HEADER = "x-budget-ms"
# Small, so that both are cheap to reach.
BODY_LIMIT = 4096
BUDGET_SECONDS = 6.0


class TooLongError(Exception):
    """The body has more bytes than the limit."""


class RightWorker:
    """The transport and, in `queue`, the worker behind it."""

    queue_class = Queue

    def __init__(self) -> None:
        self.queue = self.queue_class()

    def close(self) -> None:
        """End the worker."""
        self.queue.close()

    def answer(self, arrival: Arrival) -> Reply | None:
        """One request."""
        match arrival.method, arrival.path:
            case "POST", "/v1/systemone":
                return self.work(arrival)
            case "GET", "/health":
                return self.health(self.queue.stage)
            case _, "/testing/worker":
                return self._stage(arrival)
            case _:
                return json_reply(404, {"error": "no such route"})

    def _stage(self, arrival: Arrival) -> Reply:
        if arrival.method == "POST":
            body = b"".join(arrival.parts(arrival.started + BUDGET_SECONDS))
            self.queue.set(Stage(**json.loads(body)))
        queue = self.queue
        return json_reply(200, {"asked": queue.asked, "held": queue.held, "last": queue.last})

    # Health

    def health(self, stage: Stage) -> Reply:
        if stage.readiness == "ready":
            return json_reply(200, {"status": "ok", **self.counters(stage)})
        if stage.readiness == "failed":
            return json_reply(503, {"status": "failed", "reason": stage.reason})
        return json_reply(503, {"status": "starting"})

    def counters(self, stage: Stage) -> dict[str, int]:
        if not stage.measured:
            return {}
        queue = self.queue
        with queue.news:
            return {"depth": queue.depth, "capacity": queue.capacity, "rejected": queue.rejected}

    # Work

    def work(self, arrival: Arrival) -> Reply | None:
        if self.refuses(self.queue.stage):
            return json_reply(503, {"error": "model unavailable"})
        deadline = arrival.started + self.budget(arrival)
        try:
            body = self.body(arrival, deadline)
        except TooLongError:
            return json_reply(413, {"error": "the body is too long"})
        except UnreadableError:
            return self.unreadable()
        except LateError:
            return self.late("upload")
        deadline = self.deadline_after_upload(arrival, deadline)
        if self.used_up(deadline):
            return self.late("upload")
        return self.submitted(arrival, body, deadline)

    def refuses(self, stage: Stage) -> bool:
        return stage.readiness != "ready"

    def budget(self, arrival: Arrival) -> float:
        asked = arrival.headers.get(BUDGET_HEADER)
        return BUDGET_SECONDS if asked is None else min(BUDGET_SECONDS, int(asked) / 1000)

    def body(self, arrival: Arrival, deadline: float) -> bytes:
        if int(arrival.headers.get("content-length", "0")) > self.limit():
            raise TooLongError
        body = b""
        for part in arrival.parts(deadline):
            body += part
            if len(body) > self.limit():
                raise TooLongError
        return body

    def limit(self) -> int:
        return BODY_LIMIT

    def unreadable(self) -> Reply:
        return json_reply(400, {"error": "the body could not be read"})

    def deadline_after_upload(self, arrival: Arrival, deadline: float) -> float:
        del arrival
        return deadline

    def used_up(self, deadline: float) -> bool:
        return time.monotonic() >= deadline

    def late(self, where: str) -> Reply:
        """where: upload, queue or inference."""
        del where
        return json_reply(504, {"error": "the budget is used up"})

    def submitted(self, arrival: Arrival, body: bytes, deadline: float) -> Reply | None:
        taken = self.queue.submit(body, deadline)
        if isinstance(taken, Outcome):
            return self.reply(taken)
        return self.awaited(arrival, taken, deadline)

    def awaited(self, arrival: Arrival, entry: Entry, deadline: float) -> Reply | None:
        try:
            stayed = arrival.wait(entry.done, deadline)
        except LateError:
            where = "queue" if entry in self.queue.waiting else "inference"
            self.queue.leave(entry)
            return self.late(where)
        if not stayed or entry.outcome is None:
            self.queue.leave(entry)
            return None
        return self.reply(entry.outcome)

    def reply(self, outcome: Outcome) -> Reply:
        match outcome.kind:
            case Kind.ANSWER:
                return self.answered(outcome)
            case Kind.INVALID:
                return self.invalid(outcome.text)
            case Kind.BUSY:
                return json_reply(503, {"error": "inference queue full"})
            case Kind.FAILED:
                return self.failed()
            case Kind.UNAVAILABLE | Kind.DROPPED:
                return self.lost()

    def answered(self, outcome: Outcome) -> Reply:
        headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
        if outcome.depth is not None:
            headers = (*headers, ("x-queue-depth", str(outcome.depth)))
        return Reply(200, outcome.body, headers)

    def invalid(self, text: str) -> Reply:
        return json_reply(400, {"error": text})

    def failed(self) -> Reply:
        return json_reply(500, {"error": "inference failed"})

    def lost(self) -> Reply:
        return json_reply(503, {"error": "model unavailable"})
