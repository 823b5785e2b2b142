"""The reader's end of a request: events in order, on the event loop's side."""

import asyncio
from collections.abc import AsyncIterator

from reference_engine.engine.core import OpenRequest
from reference_engine.engine.output import Event, is_last
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
        """The events up to and with the last one."""
        while True:
            event = await self._events.get()
            yield event
            if is_last(event):
                return
