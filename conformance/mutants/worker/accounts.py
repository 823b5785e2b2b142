"""Faulty workers that count, measure or read wrongly."""

from __future__ import annotations

import time

from conformance.mutants.worker.mutant import WorkerMutant
from conformance.mutants.worker.queue import Entry, Queue
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


class _CountsRefused(Queue):
    def refused(self) -> None:
        super().refused()
        self.depth += 1


class _SilentRefusal(Queue):
    def refused(self) -> None:
        """Count nothing."""


class _Full(Queue):
    """A queue that was full once never gets its last place back."""

    def completed(self, entry: Entry) -> None:
        full = self.depth == self.capacity
        super().completed(entry)
        self.depth += full


class _Leaks(Queue):
    def abandoned(self) -> None:
        self.rejected += 1


class _RefusedDepth(RightWorker):
    queue_class = _CountsRefused


class _NothingRejected(RightWorker):
    queue_class = _SilentRefusal


class _StaysFull(RightWorker):
    queue_class = _Full


class _LeaksAbandoned(RightWorker):
    queue_class = _Leaks


# A place that is never free again is seen by whoever needs the queue afterwards.
_AFTERWARDS = frozenset({"OE-WORK-011", "OE-WORK-012", "OE-WORK-013", "OE-WORK-014"})

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
        also=frozenset({"OE-WORK-013"}),
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
        also=_AFTERWARDS,
    ),
    WorkerMutant(
        "worker_abandoned_leaks",
        "OE-WORK-014",
        "The place of a request whose caller has left is lost.",
        _LeaksAbandoned,
        also=_AFTERWARDS | {"OE-WORK-005", "OE-WORK-006", "OE-WORK-016"},
    ),
)
