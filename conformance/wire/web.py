"""A small HTTP server on this machine that keeps what is asked of it: what an engine fetches shows
the calls that it makes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# A client that is slower to send its headers is given up.
_READ_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request: its path, and its headers in order, names in lower case."""

    path: str
    headers: tuple[tuple[str, str], ...]

    def values(self, name: str) -> tuple[str, ...]:
        """Every value of a header, in order."""
        return tuple(value for key, value in self.headers if key == name)


class Web:
    """Answers every GET and HEAD on a free port of the loopback interface with one body."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self._fetches: list[Fetch] = []
        self._changed = threading.Condition()
        handler = _handler(self, body, content_type)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="web")
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of its root, with a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def note(self, fetch: Fetch) -> None:
        """Keep a request."""
        with self._changed:
            self._fetches.append(fetch)
            self._changed.notify_all()

    def wait_fetch(self, path: str, seconds: float) -> Fetch | None:
        """The first request of a path, waited for at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self._first(path) is not None, seconds)
            return self._first(path)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_READ_SECONDS)

    def _first(self, path: str) -> Fetch | None:
        return next((fetch for fetch in self._fetches if fetch.path == path), None)


@contextmanager
def web(body: bytes, content_type: str) -> Iterator[Web]:
    """A server for as long as the block runs."""
    made = Web(body, content_type)
    try:
        yield made
    finally:
        made.close()


def _handler(owner: Web, body: bytes, content_type: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _READ_SECONDS

        def do_GET(self) -> None:
            self._answer(body)

        def do_HEAD(self) -> None:
            self._answer(b"")

        def _answer(self, sent: bytes) -> None:
            headers = tuple((name.lower(), value) for name, value in self.headers.items())
            owner.note(Fetch(self.path, headers))
            self.send_response(200)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the requests are kept, not printed."""

    return Handler
