"""The reader's end of a request: events in order, on the event loop's side."""

import asyncio
from collections.abc import AsyncIterator

from reference_engine.engine.core import OpenRequest
from reference_engine.engine.output import Event, TokensProduced, is_last
from reference_engine.engine.request import Request


class Stream:
    """One request as the server holds it. `opened` belongs to the engine's thread."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.opened: OpenRequest | None = None
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    def put(self, event: Event) -> None:
        """Append an event; called on the event loop."""
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[Event]:
        """The events up to and with the last one.

        Tokens that have piled up while the reader was slow come together: a message costs about
        30 us of the loop's thread, which a full batch at 2 ms a step cannot afford for each token.
        """
        while True:
            event = await self._events.get()
            while not self._events.empty():
                following = self._events.get_nowait()
                joined = _joined(event, following)
                if joined is None:
                    yield event
                event = joined or following
            yield event
            if is_last(event):
                return


def _joined(event: Event, following: Event) -> Event | None:
    """Two events as one, if both are tokens of the same output."""
    if not isinstance(event, TokensProduced) or not isinstance(following, TokensProduced):
        return None
    if event.output_index != following.output_index:
        return None
    return TokensProduced(
        event.output_index, event.tokens + following.tokens, event.text + following.text
    )
