"""Many load streams at once, spread over several connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.checks.probe import Probe
from conformance.checks.scheduling_load.watching import WATCH_SECONDS
from conformance.laws.load_stream import WATCH_LOAD, sent, settings_of
from conformance.wire.connection import Connection
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1
from oe_wire.services import METHODS

# Servers allow 100 calls or more on one connection; further ones would wait in this client.
PER_CONNECTION = 50
# Within which ended streams give their places back (LOAD-041).
FREED_SECONDS = 2.0


class Crowd:
    """Streams of one request each. Its connections are closed by `crowd`."""

    def __init__(self, probe: Probe, request: v1.WatchLoadRequest) -> None:
        self.streams: list[LiveCall] = []
        self.connections: list[Connection] = []
        self._probe = probe
        self._request = request
        self._begun = 0

    def grow(self, count: int) -> list[LiveCall]:
        """Open `count` streams more; those that got their settings."""
        begun = [self.begin() for _ in range(count)]
        return [live for live in begun if self.settled(live)]

    def begin(self) -> LiveCall:
        """Open one stream more, without waiting for it."""
        probe = self._probe
        if self._begun % PER_CONNECTION == 0:
            base = probe.connection
            self.connections.append(Connection(base.target, base.routes))
        self._begun += 1
        probe.spending.requests += 1
        probe.methods.add(WATCH_LOAD)
        live = self.connections[-1].start(
            METHODS[WATCH_LOAD], self._request, deadline=WATCH_SECONDS
        )
        self.streams.append(live)
        return live

    def settled(self, live: LiveCall) -> bool:
        """Whether a stream gets its settings."""
        live.wait_event(1, self._probe.pace.unary_limit())
        return settings_of(sent(live.events)) is not None

    def opens(self) -> bool:
        """Whether there is room for one stream more, which is ended again."""
        live = self.begin()
        settled = self.settled(live)
        self.end(live)
        return settled

    def end(self, live: LiveCall) -> Transcript:
        """Cancel one stream and let the laws judge it."""
        live.cancel()
        self.streams.remove(live)
        transcript = live.finish()
        self._probe.record(transcript)
        return transcript


@contextmanager
def crowd(probe: Probe, request: v1.WatchLoadRequest) -> Iterator[Crowd]:
    """No stream yet; all that are left are ended and judged after the block. There is room for
    others again when it is over, unless the engine keeps it back: that is a row of its own.
    """
    streams = Crowd(probe, request)
    try:
        yield streams
        for live in tuple(streams.streams):
            live.cancel()
        for live in tuple(streams.streams):
            streams.end(live)
        probe.wait_until(streams.opens, probe.pace.required(FREED_SECONDS) + probe.pace.unary)
    finally:
        for connection in streams.connections:
            connection.close()
