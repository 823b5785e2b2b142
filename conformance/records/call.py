"""Makes one call under a store: lease, send, outcome. What comes out holds no text."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, replace

from conformance.errors import ConfigError
from conformance.http.client import HttpConnection
from conformance.http.dialer import Dialer
from conformance.http.exchange import End, Exchange, Request
from conformance.http.limits import Limits
from conformance.http.origin import Origin
from conformance.http.pinning import ResolveError
from conformance.http.policy import PolicyError
from conformance.http.target import HttpTarget
from conformance.records.category import BEFORE_DISPATCH, Category, category_of
from conformance.records.identity import IdentityKey
from conformance.records.reading import Reading, read
from conformance.records.record import (
    MOST_MICROSECONDS,
    CallRecord,
    Completion,
    Dispatch,
    Intent,
    Timing,
)
from conformance.records.store import CallStore
from conformance.runtimes.profile import Route, UsagePlace

# Contracts whose answers give no reason for their end.
NO_FINISH = frozenset({"lmstudio-native"})


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that is ready to be made. stream, usage: whether the request asks for these."""

    intent: Intent
    request: Request
    route: Route
    stream: bool
    usage: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made. exchange, reading: in memory only; None when there was no answer."""

    record: CallRecord
    exchange: Exchange | None = None
    reading: Reading | None = None


class Watch:
    """A dialer that remembers how far it came, which the end of a call does not tell."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self.failure: Category | None = None
        self.connected: float | None = None
        self.dials = 0

    def __call__(self, origin: Origin, seconds: float) -> socket.socket:
        self.dials += 1
        try:
            connected = self._dialer(origin, seconds)
        except PolicyError:
            self.failure = Category.POLICY_REFUSED
            raise
        except ResolveError:
            self.failure = Category.DNS
            raise
        except TimeoutError:
            self.failure = Category.TIMEOUT_CONNECT
            raise
        except OSError:
            self.failure = Category.CONNECT
            raise
        self.connected = time.monotonic()
        return connected


def make_call(
    store: CallStore, key: IdentityKey, target: HttpTarget, planned: Planned, limits: Limits
) -> Made:
    """Make a planned call once. Raises HarnessError when the store says that it may have been
    made before. An end of this process leaves a lease, which the store makes sent_unknown.
    """
    watch = Watch(target.dialer)
    attempt = store.lease(
        planned.intent.call_id,
        request_bytes=len(planned.request.body),
        response_limit=limits.response_bytes,
    )
    exchange, reading = None, None
    started = time.monotonic()
    try:
        exchange = _sent(replace(target, dialer=watch), planned, limits)
    except ConfigError:
        # The policy, or a credential that is not there: nothing went out.
        record = _unsent(planned, attempt, watch.failure or Category.POLICY_REFUSED)
    except BaseException:
        lost = _unsent(planned, attempt, Category.INTERRUPTED)
        store.complete(replace(lost, dispatch=Dispatch.SENT_UNKNOWN))
        raise
    else:
        connect = None if watch.connected is None else watch.connected - started
        reading = read(exchange, planned.route, stream=planned.stream)
        record = _outcome(planned, attempt, exchange, reading, watch)
        timing = replace(_timing(exchange, reading), connect=_micro(connect))
        response = None if exchange.status is None else key.response(exchange.body)
        record = replace(record, timing=timing, response=response)
    store.complete(record)
    return Made(record, exchange, reading)


def _sent(target: HttpTarget, planned: Planned, limits: Limits) -> Exchange:
    with HttpConnection(target, limits) as connection:
        live = connection.start(
            planned.request, route=planned.route.name, contract=planned.route.contract
        )
        return connection.finish(live)


def _unsent(planned: Planned, attempt: int, category: Category) -> CallRecord:
    return CallRecord(planned.intent, attempt, Dispatch.NOT_SENT, Completion.FAILED, error=category)


def _outcome(
    planned: Planned, attempt: int, exchange: Exchange, reading: Reading, watch: Watch
) -> CallRecord:
    category = category_of(exchange)
    if exchange.ending.kind is End.CONNECT:
        category = watch.failure or (Category.TLS if watch.connected else Category.CONNECT)
    if category in BEFORE_DISPATCH:
        return _unsent(planned, attempt, category)
    refused = category is not None and exchange.whole
    if category is None:
        category = missing(planned, reading)
    if category is None:
        dispatch, completion = Dispatch.COMPLETED, Completion.COMPLETE
    elif refused:
        # The server has answered, so what became of the request is known.
        dispatch, completion = Dispatch.COMPLETED, Completion.FAILED
    else:
        dispatch, completion = Dispatch.SENT_UNKNOWN, Completion.INCOMPLETE
    return CallRecord(
        planned.intent,
        attempt,
        dispatch,
        completion,
        finish=reading.finish,
        status=exchange.status,
        error=category,
        frames=len(reading.frames) if exchange.status is not None else None,
        terminator=reading.terminator,
        usage=reading.usage,
        provider_timing=reading.timing,
    )


def missing(planned: Planned, reading: Reading) -> Category | None:
    """What a whole 2xx answer lacks to be a complete one."""
    if not reading.framed:
        return Category.PROTOCOL_FRAMING if planned.stream else Category.PROTOCOL_JSON
    if reading.error:
        return Category.STREAM_ERROR_EVENT
    if not reading.schema:
        return Category.PROTOCOL_JSON
    if reading.terminator is False:
        return Category.TRUNCATED
    if reading.finish is None and planned.route.contract not in NO_FINISH:
        return Category.PROTOCOL_SCHEMA
    if _usage_due(planned) and reading.usage.completion is None:
        return Category.PROTOCOL_SCHEMA
    return None


def _usage_due(planned: Planned) -> bool:
    place: UsagePlace | None = planned.route.usage
    if place is None or place.when == "never" or place.where == "absent":
        return False
    return planned.usage or not planned.stream or place.when == "always"


def _timing(exchange: Exchange, reading: Reading) -> Timing:
    ends = [exchange.when(frame.end) for frame in reading.frames]
    return Timing(
        headers=_micro(exchange.headers_seconds),
        first_event=_micro(min(ends, default=None)),
        last_event=_micro(max(ends, default=None)),
        total=_micro(exchange.ending.seconds),
    )


def _micro(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    return min(max(0, round(seconds * 1e6)), MOST_MICROSECONDS)
