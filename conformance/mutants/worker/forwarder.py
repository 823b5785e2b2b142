"""A right transport that forwards to a worker elsewhere, for the rules of forwarding."""

from __future__ import annotations

from dataclasses import replace

from conformance.http.client import HttpConnection
from conformance.http.exchange import End, Exchange, Request
from conformance.http.limits import DEFAULT
from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.mutants.worker.right import BUDGET_HEADER, BUDGET_SECONDS, WORK
from conformance.mutants.worker.server import Arrival, Reply, json_reply

_KEPT = frozenset({"content-type", "x-queue-depth", "location"})
_LATE = frozenset({End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL})


class RightForwarder:
    """Forwards work; keeps what it gets."""

    def __init__(self, origin: str) -> None:
        self._target = HttpTarget(parse_origin(origin))

    def answer(self, arrival: Arrival) -> Reply | None:
        """One request."""
        asked = int(arrival.headers.get(BUDGET_HEADER, "600000")) / 1000
        budget = min(BUDGET_SECONDS, asked)
        body = b"".join(arrival.parts(arrival.started + budget))
        limits = replace(DEFAULT, headers_seconds=budget, idle_seconds=budget, total_seconds=budget)
        headers = (("content-type", arrival.headers.get("content-type", "")),)
        with HttpConnection(self._target, limits) as connection:
            seen = connection.finish(connection.start(Request("POST", WORK, headers, body)))
        if seen.ending.kind in _LATE:
            return self.late()
        if not seen.whole or seen.status is None:
            return json_reply(502, {"error": "the worker cannot be reached"})
        return self.kept(seen)

    def late(self) -> Reply:
        return json_reply(504, {"error": "the budget is used up"})

    def kept(self, seen: Exchange) -> Reply:
        headers = tuple(pair for pair in seen.headers if pair[0] in _KEPT)
        return Reply(seen.status or 502, seen.body, headers)
