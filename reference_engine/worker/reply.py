"""The answers of the transport: which status and body each outcome has."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from reference_engine.worker.contract import (
    Answer,
    Busy,
    InferenceFailed,
    InvalidRequest,
    Outcome,
    Readiness,
    Unavailable,
    Worker,
)

DEPTH_HEADER = "x-queue-depth"
MODEL_UNAVAILABLE = "model unavailable"


class AsciiJson(JSONResponse):
    """JSON in ASCII: a text from a worker may hold lone surrogates, which have no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error(status: int, text: str) -> Response:
    """An error answer."""
    return AsciiJson({"error": text}, status)


def reply(outcome: Outcome) -> Response:
    """The answer for a worker's outcome."""
    match outcome:
        case Answer(body, depth):
            headers = {} if depth is None else {DEPTH_HEADER: str(depth)}
            return Response(body, 200, headers, "application/json")
        case InvalidRequest(text):
            return error(400, text)
        case Busy():
            return error(503, "inference queue full")
        case Unavailable():
            return error(503, MODEL_UNAVAILABLE)
        case InferenceFailed():
            return error(500, "inference failed")


def health(worker: Worker) -> Response:
    """The answer of the health route: three states, and the counters that a ready worker has."""
    match worker.readiness():
        case Readiness.STARTING:
            return AsciiJson({"status": "starting"}, 503)
        case Readiness.FAILED:
            return AsciiJson({"status": "failed", "reason": worker.failure() or "unknown"}, 503)
        case Readiness.READY:
            return AsciiJson({"status": "ok", **_counters(worker)})


def _counters(worker: Worker) -> dict[str, int]:
    report = worker.report()
    if report is None:
        return {}
    measured = {"depth": report.depth, "capacity": report.capacity, "rejected": report.rejected}
    return {name: value for name, value in measured.items() if value is not None}
