"""The reader's end of a request: events in order, on the event loop's side."""

import asyncio
from collections.abc import AsyncIterator, Callable

from reference_engine.engine.core import OpenRequest
from reference_engine.engine.output import (
    Event,
    OutputFinished,
    PromptScored,
    RequestFailed,
    TokensProduced,
    Usage,
    is_last,
)
from reference_engine.engine.request import Request

# Token records and candidates that may wait for a reader before its request is set aside: about
# 100 B each in Python, so 6 MB for a request. 64 sequences of 256 tokens stay below it together.
MOST_WAITING = 65_536

STALLED = "the stream was not read for longer than response_stall_timeout_ms"


class Stream:
    """One request as the server holds it. `opened` belongs to the engine's thread.

    rank: the data-parallel rank that computes it. on_drained: called when a reader that lagged
    by more than MOST_WAITING has read everything.
    """

    def __init__(
        self, request: Request, on_drained: Callable[["Stream"], None] = lambda _: None
    ) -> None:
        self.request = request
        self.rank = 0
        self.opened: OpenRequest | None = None
        self.lagging = False
        self._on_drained = on_drained
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._waiting = 0
        self._stalled = False
        self._num_tokens = 0

    def usage(self) -> Usage | None:
        """What has come up to now, for a request whose own account is lost; None for nothing."""
        if not self._num_tokens:
            return None
        return Usage(len(self.request.prompt), self._num_tokens, cached_prompt_tokens=0)

    def put(self, event: Event) -> bool:
        """Append an event; called on the event loop. True when the reader begins to lag."""
        if isinstance(event, TokensProduced):
            self._num_tokens += len(event.tokens)
        if self._stalled:
            if is_last(event):
                self._events.put_nowait(_stall(event))
            return False
        self._events.put_nowait(event)
        self._waiting += _weight(event)
        if self.lagging or self._waiting <= MOST_WAITING:
            return False
        self.lagging = True
        return True

    def stall(self) -> None:
        """Drop what waits for the reader: the request's end is all that it still gets."""
        self._stalled = True
        last = None
        while not self._events.empty():
            last = self._events.get_nowait()
        self._waiting = 0
        if last is not None and is_last(last):
            self._events.put_nowait(_stall(last))

    def _take(self) -> Event:
        event = self._events.get_nowait()
        if not self._stalled:
            self._waiting -= _weight(event)
        return event

    async def events(self) -> AsyncIterator[Event]:
        """The events up to and with the last one.

        Tokens that have piled up while the reader was slow come together: a message costs about
        30 us of the loop's thread, which a full batch at 2 ms a step cannot afford for each token.
        """
        while True:
            event = await self._next()
            while not self._events.empty():
                following = self._take()
                joined = _joined(event, following)
                if joined is None:
                    yield event
                event = joined or following
            yield event
            if is_last(event):
                return

    async def _next(self) -> Event:
        if self.lagging and self._events.empty():
            self.lagging = False
            self._on_drained(self)
        event = await self._events.get()
        if not self._stalled:
            self._waiting -= _weight(event)
        return event


def _weight(event: Event) -> int:
    """Token records and candidates in an event."""
    if not isinstance(event, TokensProduced | PromptScored):
        return 1
    weight = len(event.tokens)
    for token in event.tokens:
        if token.score is not None and token.score.candidates is not None:
            weight += len(token.score.candidates.token_ids)
    return weight


def _stall(last: Event) -> RequestFailed:
    """What replaces the last event of a request whose reader stalled; the usage stays."""
    usage: Usage | None = None
    if isinstance(last, OutputFinished | RequestFailed):
        usage = last.usage
    return RequestFailed(STALLED, usage, overloaded=True)


def _joined(event: Event, following: Event) -> Event | None:
    """Two events as one, if both are tokens of the same output."""
    if not isinstance(event, TokensProduced) or not isinstance(following, TokensProduced):
        return None
    if event.output_index != following.output_index:
        return None
    return TokensProduced(
        event.output_index, event.tokens + following.tokens, event.text + following.text
    )
