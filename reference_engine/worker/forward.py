"""The same routes in front of a worker in another process: its answers pass through unchanged.

504 when the backend uses up the budget, 502 when it cannot be reached or answers with too much;
nothing is sent twice, and a redirect is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reference_engine.worker.arrival import read_body
from reference_engine.worker.bounded import bounded
from reference_engine.worker.exchange import awaited
from reference_engine.worker.reply import DEPTH_HEADER, error
from reference_engine.worker.settings import TransportSettings

_KEPT = ("content-type", "location", DEPTH_HEADER)


class _TooMuchError(Exception):
    """The backend's answer is longer than the limit."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """An answer of the backend."""

    status: int
    headers: dict[str, str]
    body: bytes


def forwarding_app(
    backend: str,
    settings: TransportSettings,
    also: tuple[tuple[str, str], ...] = (),
    transport: httpx.AsyncBaseTransport | None = None,
) -> Starlette:
    """The ASGI application. backend: origin of the worker. also: method and path of more routes
    to forward. transport: the way to the backend, None for the network.
    """
    # The budget bounds every call; httpx's own limits would only blur 504 and 502.
    client = httpx.AsyncClient(
        base_url=backend,
        timeout=httpx.Timeout(None),
        follow_redirects=False,
        trust_env=False,
        transport=transport,
    )
    forwarder = _Forwarder(client, settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    paths = (("POST", settings.work_path), ("GET", settings.health_path), *also)
    return Starlette(
        routes=[Route(path, forwarder.forward, methods=[method]) for method, path in paths],
        lifespan=lifespan,
    )


class _Forwarder:
    """The handler of all forwarded routes."""

    def __init__(self, client: httpx.AsyncClient, settings: TransportSettings) -> None:
        self._client = client
        self._settings = settings

    async def forward(self, request: Request) -> Response:
        lost = error(502, "the worker cannot be reached, or its answer cannot be used")
        return await bounded(request, self._settings, self._forward, lost)

    async def _forward(self, request: Request, deadline: float) -> Response:
        body = await read_body(request, self._settings.body_limit, deadline)
        rest = deadline - asyncio.get_running_loop().time()
        if rest <= 0:
            raise TimeoutError
        headers = {"accept-encoding": "identity"}
        if "content-type" in request.headers:
            headers["content-type"] = request.headers["content-type"]
        if self._settings.budget_header:
            headers[self._settings.budget_header] = str(int(rest * 1000))
        sent = self._client.build_request(
            request.method, request.url.path, headers=headers, content=body
        )
        reached = await awaited(request, self._reach(sent), deadline)
        return Response(reached.body, reached.status, reached.headers)

    async def _reach(self, sent: httpx.Request) -> _Reached:
        answer = await self._client.send(sent, stream=True)
        try:
            body = bytearray()
            async for part in answer.aiter_raw():
                body += part
                if len(body) > self._settings.response_limit:
                    raise _TooMuchError
        finally:
            await answer.aclose()
        kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
        return _Reached(answer.status_code, kept, bytes(body))
