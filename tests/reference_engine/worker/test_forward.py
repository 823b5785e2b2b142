"""Forwarding: the backend's answers as they are, 504 and 502 of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from reference_engine.worker.forward import forwarding_app
from reference_engine.worker.settings import TransportSettings
from tests.reference_engine.worker.virtual import Call, run_virtual

SETTINGS = TransportSettings(
    body_limit=16, budget_seconds=10.0, budget_header="x-budget-ms", response_limit=100
)
Backend = Callable[[httpx.Request], object]


class _Stream(httpx.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.body


def answer(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> httpx.Response:
    """An answer as the network brings it: its body is still to come."""
    return httpx.Response(status, headers=headers, stream=_Stream(body))


def ask(backend: Backend, **call: object) -> tuple[Call, list[httpx.Request]]:
    """Send one call through a forwarder in front of a backend; also what came there."""
    arrived: list[httpx.Request] = []

    async def handle(request: httpx.Request) -> httpx.Response:
        arrived.append(request)
        said = backend(request)
        return await said if asyncio.iscoroutine(said) else said

    app = forwarding_app(
        "http://backend:1", SETTINGS, (("GET", "/more"),), httpx.MockTransport(handle)
    )
    return run_virtual(Call(**call).run(app)), arrived


def test_an_answer_passes_unchanged():
    """Status, content type, body and depth; nothing else of the backend's headers."""
    headers = {"content-type": "text/x; a=b", "x-queue-depth": "0", "server": "secret"}
    seen, arrived = ask(
        lambda _: answer(418, b"\xff\x00", headers),
        parts=((0.0, b"\x00\xfe"),),
        headers=(("content-type", "application/json"),),
    )
    assert (seen.status, seen.body) == (418, b"\xff\x00")
    assert seen.sent == {"content-type": "text/x; a=b", "x-queue-depth": "0", "content-length": "2"}
    [request] = arrived
    assert (request.content, request.headers["content-type"]) == (b"\x00\xfe", "application/json")
    assert request.headers["accept-encoding"] == "identity"


def test_the_rest_of_the_budget_goes_along():
    """After an upload of three seconds, seven are left."""
    _, [request] = ask(lambda _: answer(200), parts=((3.0, b"x"),))
    assert request.headers["x-budget-ms"] == "7000"


def test_a_silent_backend_is_504():
    """At the end of the budget, asked once."""

    async def silent() -> httpx.Response:
        await asyncio.sleep(1e6)
        raise RuntimeError("not reached")

    seen, arrived = ask(lambda _: silent())
    assert (seen.status, seen.seconds, len(arrived)) == (504, 10.0, 1)


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError])
def test_a_broken_connection_is_502(error):
    """And nothing is sent again."""

    def broken(request: httpx.Request) -> httpx.Response:
        raise error("as staged", request=request)

    seen, arrived = ask(broken)
    assert (seen.status, len(arrived)) == (502, 1)


@pytest.mark.parametrize(("size", "status"), [(100, 200), (101, 502)])
def test_an_oversized_answer_is_502(size, status):
    """At the first byte beyond the limit."""
    seen, _ = ask(lambda _: answer(200, b"x" * size))
    assert seen.status == status


def test_redirects_are_the_callers_business():
    """Returned with their location, not followed."""
    seen, arrived = ask(lambda _: answer(307, b"", {"location": "http://elsewhere/"}))
    assert (seen.status, seen.sent["location"], len(arrived)) == (307, "http://elsewhere/", 1)


def test_the_body_limit_holds_here_too():
    """The backend sees nothing of it."""
    seen, arrived = ask(lambda _: answer(200), parts=((0.0, b"x" * 17),))
    assert (seen.status, arrived) == (413, [])


def test_health_and_further_routes_are_forwarded():
    """By their own method and path."""
    for path in ("/health", "/more"):
        _, [request] = ask(lambda _: answer(200), path=path, method="GET", parts=((0.0, b""),))
        assert (request.method, request.url.path) == ("GET", path)
