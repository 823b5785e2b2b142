"""Makes HTTP/1.1 calls with httpx: one connection each, no redirects, proxies or compression."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Self

import httpcore
import httpx

from conformance.http.exchange import Chunk, End, Ending, Exchange, Headers, Request
from conformance.http.limits import DEFAULT, Limits
from conformance.http.link import Link
from conformance.http.quiet import quiet
from conformance.http.target import HttpTarget

# Between two looks at what has arrived; a notification comes first, so this is only a safety net.
_POLL_SECONDS = 0.5
_FAILURES = (
    httpx.RemoteProtocolError,
    httpcore.RemoteProtocolError,
    httpcore.NetworkError,
    httpcore.TimeoutException,
)
# How httpcore and h11 say that the server closed too early; everything else is no HTTP.
_CLOSED = ("disconnected", "peer closed", "peer unexpectedly closed")


class LiveExchange:
    """A call that runs in a thread of its own. `finish` must be called."""

    def __init__(
        self, target: HttpTarget, tls: ssl.SSLContext | None, call: Exchange, limits: Limits
    ) -> None:
        self._target = target
        self._tls = tls
        self._call = call
        self._limits = limits
        self._link = Link(target, limits)
        self._news = threading.Condition()
        self._status: int | None = None
        self._chunks: list[Chunk] = []
        self._finished: Exchange | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"http {call.name}", daemon=True)
        self._thread.start()

    # What the caller does

    def cancel(self, *, reset: bool = False) -> None:
        """Leave as a client that has lost interest: close the connection, or reset it."""
        self._link.cancel(reset=reset)

    def wait(self, condition: Callable[[bytes], bool], seconds: float) -> bool:
        """Wait until the body so far satisfies `condition`; False when the call has ended, or
        `seconds` have passed, without that.
        """
        end = self._link.seconds() + seconds
        with self._news:
            while not condition(b"".join(chunk.data for chunk in self._chunks)):
                rest = end - self._link.seconds()
                if rest <= 0 or self._ended:
                    return False
                self._news.wait(min(rest, _POLL_SECONDS))
        return True

    @property
    def ended(self) -> bool:
        """Whether the call is over."""
        with self._news:
            return self._ended

    @property
    def _ended(self) -> bool:
        return self._finished is not None or self._failed is not None

    def finish(self) -> Exchange:
        """Wait for the end. Raises ConformError when the dialer's policy forbids the target."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        if self._finished is None:
            raise RuntimeError("a call ended without an outcome")
        return self._finished

    # The thread

    def _run(self) -> None:
        finished, failed = None, None
        try:
            finished = self._made()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that joins
            failed = error
        with self._news:
            self._finished, self._failed = finished, failed
            self._news.notify_all()

    def _made(self) -> Exchange:
        response = _Response()
        try:
            with (
                quiet(),
                self._client() as client,
                contextlib.closing(self._sent(client)) as received,
            ):
                self._read(received, response)
                kind = End.COMPLETE if _delimited(received) else End.CLOSED
                details = ""
        except _Over as over:
            kind, details = over.kind, ""
        except _FAILURES as error:
            kind, details = self._reason(error, response), type(error).__name__
        if self._link.cancelled is not None and kind is not End.COMPLETE:
            kind = End.CANCELLED
        call = self._call
        return Exchange(
            call.route,
            call.contract,
            call.request,
            Ending(self._link.seconds(), kind, details),
            response.status,
            response.http_version,
            response.headers,
            response.headers_seconds,
            tuple(self._chunks),
            self._link.cancelled,
        )

    def _client(self) -> httpx.Client:
        return httpx.Client(
            transport=_Transport(self._link, self._tls), trust_env=False, follow_redirects=False
        )

    def _sent(self, client: httpx.Client) -> httpx.Response:
        request = self._call.request
        headers = [*request.headers, *self._target.secrets()]
        return client.send(
            httpx.Request(
                request.method,
                self._target.origin.text + request.path,
                headers=headers,
                content=request.body,
            ),
            stream=True,
        )

    def _read(self, received: httpx.Response, response: _Response) -> None:
        response.status = received.status_code
        version = received.extensions.get("http_version", b"")
        response.http_version = version.decode("ascii", errors="replace")
        response.headers = _headers(received)
        response.headers_seconds = self._link.seconds()
        lengths = [len(name) + len(value) + 4 for name, value in response.headers]
        if len(lengths) > self._limits.headers or sum(lengths) > self._limits.header_bytes:
            raise _Over(End.LIMIT_HEADERS)
        self._link.reading_body()
        self._read_body(received)

    def _read_body(self, received: httpx.Response) -> None:
        size = 0
        for data in received.iter_raw():
            if len(self._chunks) >= self._limits.chunks:
                raise _Over(End.LIMIT_CHUNKS)
            size += len(data)
            kept = data[: len(data) - max(0, size - self._limits.response_bytes)]
            with self._news:
                self._chunks.append(Chunk(self._link.seconds(), kept))
                self._news.notify_all()
            if size > self._limits.response_bytes:
                raise _Over(End.LIMIT_BODY)

    def _reason(self, error: Exception, response: _Response) -> End:
        if self._link.why is not None:
            return self._link.why
        protocol = isinstance(error, httpx.RemoteProtocolError | httpcore.RemoteProtocolError)
        if protocol and not any(word in str(error) for word in _CLOSED):
            return End.MALFORMED
        return End.NO_RESPONSE if response.status is None else End.TRUNCATED


class _Response:
    """What is known of a response so far."""

    status: int | None = None
    http_version: str = ""
    headers: Headers = ()
    headers_seconds: float | None = None


class _Over(Exception):
    """A limit is reached."""

    def __init__(self, kind: End) -> None:
        super().__init__(kind.value)
        self.kind = kind


class _Transport(httpx.BaseTransport):
    """One httpcore connection over a link, in the place of httpx's own pool."""

    def __init__(self, link: Link, tls: ssl.SSLContext | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=1,
            max_keepalive_connections=0,
            http1=True,
            http2=False,
            retries=0,
            network_backend=link,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
            )
        )
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of a httpcore response, with its errors as httpx spells them."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_stream()
        except httpcore.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error

    def close(self) -> None:
        self._answer.close()


def _headers(received: httpx.Response) -> Headers:
    return tuple(
        (name.decode("ascii", errors="replace").lower(), value.decode("latin-1"))
        for name, value in received.headers.raw
    )


def _delimited(received: httpx.Response) -> bool:
    """Whether the response said where it ends, other than by closing."""
    if received.status_code in {204, 304} or received.request.method == "HEAD":
        return True
    coded = received.headers.get("transfer-encoding", "").lower()
    return "content-length" in received.headers or coded.endswith("chunked")


class HttpConnection:
    """Calls on one target; each has a connection of its own."""

    def __init__(self, target: HttpTarget, limits: Limits = DEFAULT) -> None:
        self.target = target
        self.limits = limits
        self._tls = _context(target)
        self._lock = threading.Lock()
        self._live: set[LiveExchange] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self,
        request: Request,
        *,
        route: str = "",
        contract: str = "",
        limits: Limits | None = None,
    ) -> LiveExchange:
        """Start a call; `finish` must be called on the result (of this class or of that)."""
        call = Exchange(route, contract, self.prepared(request), Ending(0.0, End.NO_RESPONSE))
        live = LiveExchange(self.target, self._tls, call, limits or self.limits)
        with self._lock:
            self._live.add(live)
        return live

    def prepared(self, request: Request) -> Request:
        """The request with the target's own headers, and the names of its secret ones."""
        names = {name.lower() for name, _ in request.headers}
        own = tuple(pair for pair in self.target.headers if pair[0].lower() not in names)
        return Request(
            request.method,
            request.path,
            (*request.headers, *own),
            request.body,
            tuple(name for name, _ in self.target.secrets()),
        )

    def finish(self, live: LiveExchange) -> Exchange:
        """The finished call."""
        try:
            return live.finish()
        finally:
            with self._lock:
                self._live.discard(live)

    def cancel_all(self) -> None:
        """End every running call. From any thread."""
        with self._lock:
            running = list(self._live)
        for live in running:
            live.cancel()

    def close(self) -> None:
        """End what still runs and wait for it."""
        self.cancel_all()
        with self._lock:
            running, self._live = list(self._live), set()
        for live in running:
            with contextlib.suppress(Exception):
                live.finish()


def _context(target: HttpTarget) -> ssl.SSLContext | None:
    if target.origin.scheme != "https":
        return None
    return target.tls if target.tls is not None else ssl.create_default_context()
