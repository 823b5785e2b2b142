"""An event loop whose clock jumps to the next timer, and an ASGI caller in the same process."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any


class _Jumping(selectors.SelectSelector):
    """Does not wait: what would have been waited for is added to the clock."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for something that will never come")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """time() is virtual seconds since the loop was made."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now


def run_virtual(main: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


@dataclass
class Call:
    """One request to an ASGI application.

    parts: body and seconds before it; the last one completes the body unless `leaves` comes
    first. leaves: seconds after which the caller disconnects. started, ended: virtual seconds.
    """

    path: str = "/v1/systemone"
    method: str = "POST"
    parts: tuple[tuple[float, bytes], ...] = ((0.0, b"{}"),)
    headers: tuple[tuple[str, str], ...] = ()
    leaves: float | None = None
    breaks: bool = False
    status: int = 0
    sent: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    started: float = 0.0
    ended: float = 0.0

    async def run(self, app: Any) -> Call:
        loop = asyncio.get_running_loop()
        self.started = loop.time()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in self.headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        left = list(self.parts)

        async def receive():
            if left:
                seconds, data = left.pop(0)
                await asyncio.sleep(seconds)
                if self.breaks and not left:
                    return {"type": "http.disconnect"}
                return {"type": "http.request", "body": data, "more_body": bool(left)}
            if self.leaves is None:
                await asyncio.Event().wait()
            await asyncio.sleep(max(0.0, self.started + self.leaves - loop.time()))
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.sent = {key.decode(): value.decode() for key, value in message["headers"]}
            else:
                self.body += message.get("body", b"")
                self.ended = loop.time()

        await app(scope, receive, send)
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def seconds(self) -> float:
        return self.ended - self.started
