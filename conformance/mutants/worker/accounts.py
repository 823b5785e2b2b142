"""Faulty workers that count, measure or read wrongly."""

from __future__ import annotations

import time

from conformance.mutants.worker.mutant import WorkerMutant
from conformance.mutants.worker.queue import Entry, Queue, Stage
from conformance.mutants.worker.right import RightWorker
from conformance.mutants.worker.server import Arrival, Reply, json_reply

_POLL_SECONDS = 0.02


class _OneTooMany(RightWorker):
    def limit(self) -> int:
        return super().limit() + 1


class _OneTooFew(RightWorker):
    def limit(self) -> int:
        return super().limit() - 1


class _ReadsFirst(RightWorker):
    """Looks at the length only when it has the body."""

    def body(self, arrival: Arrival, deadline: float) -> bytes:
        whole = b"".join(arrival.parts(deadline))
        arrival.headers["content-length"] = str(len(whole))
        return whole if len(whole) <= self.limit() else super().body(arrival, deadline)


class _Stripped(RightWorker):
    def body(self, arrival: Arrival, deadline: float) -> bytes:
        return super().body(arrival, deadline).rstrip(b"\r\n\x00")


class _Text(RightWorker):
    def body(self, arrival: Arrival, deadline: float) -> bytes:
        return super().body(arrival, deadline).decode(errors="replace").encode()


class _Restarted(RightWorker):
    def deadline_after_upload(self, arrival: Arrival, deadline: float) -> float:
        return deadline + (time.monotonic() - arrival.started)


class _Unlooked(RightWorker):
    """Allows a little for the way of the body, and never looks at the clock again."""

    def body(self, arrival: Arrival, deadline: float) -> bytes:
        return super().body(arrival, deadline + 0.2)

    def used_up(self, deadline: float) -> bool:
        del deadline
        return False


class _Early(RightWorker):
    """Gives the worker half of the time, to have the rest for itself."""

    def awaited(self, arrival: Arrival, entry: Entry, deadline: float) -> Reply | None:
        rest = deadline - time.monotonic()
        return super().awaited(arrival, entry, deadline - rest / 2)


class _Flips(RightWorker):
    """Drops what runs when the worker stops being ready."""

    def awaited(self, arrival: Arrival, entry: Entry, deadline: float) -> Reply | None:
        while not entry.done.wait(_POLL_SECONDS):
            if self.refuses(self.queue.stage):
                return json_reply(503, {"error": "model unavailable"})
            if arrival.gone() or self.used_up(deadline):
                break
        return super().awaited(arrival, entry, deadline)


class _Leaking(Queue):
    """Loses places, and finds them again when the test run takes its stage away, so that one
    check's trouble is not the next one's.
    """

    def __init__(self) -> None:
        self.lost = 0
        super().__init__()

    def set(self, stage: Stage) -> None:
        super().set(stage)
        if stage == Stage(release=True):
            with self.news:
                self.depth -= self.lost
                self.lost = 0

    def lose(self) -> None:
        """Count a place as taken that is free."""
        self.lost += 1
        self.depth += 1


class _CountsRefused(_Leaking):
    def refused(self) -> None:
        super().refused()
        self.lose()


class _SilentRefusal(Queue):
    def refused(self) -> None:
        """Count nothing."""


class _Full(_Leaking):
    """A queue that was full once never gets its last place back."""

    def completed(self, entry: Entry) -> None:
        full = self.depth == self.capacity
        super().completed(entry)
        if full:
            self.lose()


class _Leaks(_Leaking):
    def abandoned(self) -> None:
        super().abandoned()
        if self.stage.work != "real":
            self.lose()


class _RefusedDepth(RightWorker):
    queue_class = _CountsRefused


class _NothingRejected(RightWorker):
    queue_class = _SilentRefusal


class _StaysFull(RightWorker):
    queue_class = _Full


class _LeaksAbandoned(RightWorker):
    queue_class = _Leaks


MUTANTS = (
    WorkerMutant(
        "worker_limit_plus_one",
        "OE-WORK-008",
        "The body limit is compared with the wrong sign of equality: one byte more passes.",
        _OneTooMany,
    ),
    WorkerMutant(
        "worker_limit_minus_one",
        "OE-WORK-008",
        "The body limit is compared with the wrong sign of equality: the limit is too long.",
        _OneTooFew,
    ),
    WorkerMutant(
        "worker_reads_before_refusing",
        "OE-WORK-008",
        "The length of a body is looked at when the whole body is in memory.",
        _ReadsFirst,
    ),
    WorkerMutant(
        "worker_body_stripped",
        "OE-WORK-009",
        "Line ends and zeros at the end of a body are cut off.",
        _Stripped,
    ),
    WorkerMutant(
        "worker_body_as_text",
        "OE-WORK-009",
        "The body goes through a text type on its way to the worker.",
        _Text,
    ),
    WorkerMutant(
        "worker_half_budget",
        "OE-WORK-005",
        "The worker is given up at half of the budget.",
        _Early,
        also=frozenset({"OE-WORK-006"}),
    ),
    WorkerMutant(
        "worker_budget_restarted",
        "OE-WORK-015",
        "The budget starts again when the upload is complete.",
        _Restarted,
    ),
    WorkerMutant(
        "worker_expired_submitted",
        "OE-WORK-015",
        "A request whose budget is used up is handed over all the same.",
        _Unlooked,
    ),
    WorkerMutant(
        "worker_flip_drops",
        "OE-WORK-018",
        "A request in flight is ended when the worker stops being ready.",
        _Flips,
    ),
    WorkerMutant(
        "worker_refused_in_depth",
        "OE-WORK-012",
        "A refused request raises the depth.",
        _RefusedDepth,
    ),
    WorkerMutant(
        "worker_refusal_uncounted",
        "OE-WORK-012",
        "Refusals for lack of room are not counted.",
        _NothingRejected,
    ),
    WorkerMutant(
        "worker_stays_full",
        "OE-WORK-013",
        "The place of a request that completes in a full queue is lost.",
        _StaysFull,
    ),
    WorkerMutant(
        "worker_abandoned_leaks",
        "OE-WORK-014",
        "The place of a request whose caller has left is lost.",
        _LeaksAbandoned,
    ),
)
