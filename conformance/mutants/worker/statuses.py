"""Faulty workers that answer with the wrong status, error or header."""

from __future__ import annotations

from conformance.http.exchange import Exchange
from conformance.mutants.worker.forwarder import RightForwarder
from conformance.mutants.worker.mutant import WorkerMutant
from conformance.mutants.worker.queue import Outcome, Stage
from conformance.mutants.worker.right import RightWorker
from conformance.mutants.worker.server import Arrival, Reply, json_reply

# Any order of states contains the very state that such a fault is about.
_ORDERS = frozenset({"OE-WORK-016"})


class _StartsWorking(RightWorker):
    def refuses(self, stage: Stage) -> bool:
        return stage.readiness == "failed"


class _NoReason(RightWorker):
    def health(self, stage: Stage) -> Reply:
        if stage.readiness == "failed":
            return json_reply(503, {"status": "failed"})
        return super().health(stage)


class _PlainText(RightWorker):
    def answered(self, outcome: Outcome) -> Reply:
        right = super().answered(outcome)
        return Reply(right.status, right.body, (("content-type", "text/plain"), *right.headers[1:]))


class _Late(RightWorker):
    """Answers 503 where the budget ends in one place."""

    place = ""

    def late(self, where: str) -> Reply:
        if where == self.place:
            return json_reply(503, {"error": "model unavailable"})
        return super().late(where)


class _LateUpload(_Late):
    place = "upload"


class _LateQueue(_Late):
    place = "queue"


class _LateInference(_Late):
    place = "inference"


class _Sticky(RightWorker):
    """Remembers that it was busy, and takes the next used-up budget for it."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = False

    def reply(self, outcome: Outcome) -> Reply:
        right = super().reply(outcome)
        self.refused = right.status == 503
        return right

    def late(self, where: str) -> Reply:
        return json_reply(503, {"error": "busy"}) if self.refused else super().late(where)


class _QuotedText(RightWorker):
    def invalid(self, text: str) -> Reply:
        body = f'{{"error":"{text}"}}'.encode(errors="replace")
        return Reply(400, body)


class _CutText(RightWorker):
    def invalid(self, text: str) -> Reply:
        return super().invalid(text.partition("\n")[0])


class _ZeroDepth(RightWorker):
    def answered(self, outcome: Outcome) -> Reply:
        right = super().answered(outcome)
        if outcome.depth is not None:
            return right
        return Reply(right.status, right.body, (*right.headers, ("x-queue-depth", "0")))


class _ZeroCounters(RightWorker):
    def counters(self, stage: Stage) -> dict[str, int]:
        unmeasured = {"depth": 0, "capacity": 0, "rejected": 0}
        return super().counters(stage) or unmeasured


class _FailedIsUnavailable(RightWorker):
    def failed(self) -> Reply:
        return json_reply(503, {"error": "inference failed"})


class _LostIsFailed(RightWorker):
    def lost(self) -> Reply:
        return json_reply(500, {"error": "inference failed"})


class _UnreadableIsTooLong(RightWorker):
    def unreadable(self) -> Reply:
        return json_reply(413, {"error": "the body is too long"})


class _BadGateway(RightForwarder):
    def late(self) -> Reply:
        return json_reply(502, {"error": "the worker cannot be reached"})


class _OwnErrors(RightForwarder):
    def kept(self, seen: Exchange) -> Reply:
        right = super().kept(seen)
        if right.status < 500:
            return right
        return json_reply(right.status, {"error": "the worker failed"})


class _Retries(RightWorker):
    def submitted(self, arrival: Arrival, body: bytes, deadline: float) -> Reply | None:
        for _ in range(2):
            right = super().submitted(arrival, body, deadline)
            if right is None or b"queue full" not in right.body:
                return right
        return super().submitted(arrival, body, deadline)


MUTANTS = (
    WorkerMutant(
        "worker_starting_works",
        "OE-WORK-001",
        "Only a failed worker is held back; one that still loads its model gets work.",
        _StartsWorking,
        also=_ORDERS | {"OE-WORK-018"},
    ),
    WorkerMutant(
        "worker_no_reason",
        "OE-WORK-002",
        "The health route says that the worker has failed, and keeps why to itself.",
        _NoReason,
    ),
    WorkerMutant(
        "worker_plain_text",
        "OE-WORK-003",
        "The answer's bytes go out with the framework's default content type.",
        _PlainText,
    ),
    WorkerMutant(
        "worker_upload_503",
        "OE-WORK-004",
        "A read timeout of the server is reported as an unavailable worker.",
        _LateUpload,
        also=_ORDERS | {"OE-WORK-015"},
    ),
    WorkerMutant(
        "worker_silence_503",
        "OE-WORK-005",
        "A worker that does not answer in time counts as one that is gone.",
        _LateInference,
        also=_ORDERS,
    ),
    WorkerMutant(
        "worker_queue_503",
        "OE-WORK-006",
        "A request that is still queued when its time ends counts as refused.",
        _LateQueue,
    ),
    WorkerMutant(
        "worker_sticky_503",
        "OE-WORK-016",
        "A flag that says why the last request was refused is not cleared.",
        _Sticky,
    ),
    WorkerMutant(
        "worker_busy_retried",
        "OE-WORK-007",
        "The transport tries again when the worker is full.",
        _Retries,
        also=frozenset({"OE-WORK-012"}),
    ),
    WorkerMutant(
        "worker_text_unescaped",
        "OE-WORK-010",
        "The error body is built with string formatting.",
        _QuotedText,
    ),
    WorkerMutant(
        "worker_text_cut",
        "OE-WORK-010",
        "Only the first line of the worker's text is passed on.",
        _CutText,
    ),
    WorkerMutant(
        "worker_depth_zero",
        "OE-WORK-011",
        "A depth that was not measured is published as 0.",
        _ZeroDepth,
    ),
    WorkerMutant(
        "worker_counters_zero",
        "OE-WORK-011",
        "The health route fills in zeros for counters that the worker does not have.",
        _ZeroCounters,
    ),
    WorkerMutant(
        "worker_failed_503",
        "OE-WORK-020",
        "A failed inference is answered like an unavailable worker.",
        _FailedIsUnavailable,
    ),
    WorkerMutant(
        "worker_lost_500",
        "OE-WORK-021",
        "A reply that the worker drops is answered like a failed inference.",
        _LostIsFailed,
        also=_ORDERS,
    ),
    WorkerMutant(
        "worker_unreadable_413",
        "OE-WORK-019",
        "Every error while the body is read is taken for the body limit.",
        _UnreadableIsTooLong,
    ),
    WorkerMutant(
        "worker_forward_late_502",
        "OE-WORK-017",
        "The forwarding transport takes a timeout of the worker for a failed connection.",
        forwarder=_BadGateway,
    ),
    WorkerMutant(
        "worker_forward_own_errors",
        "OE-WORK-017",
        "The forwarding transport replaces the worker's error bodies with its own.",
        forwarder=_OwnErrors,
    ),
)
