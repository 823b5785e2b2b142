"""grpc.health.v1 on the private messages.

The servicer of grpcio-health-checking holds a lock while it writes, so one watcher that does not
read delays every change, and a state that lasted a short while can be lost to all of them.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

import grpc

from oe_wire import health
from reference_engine.server.rejection import Rejection, refuse

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

SERVING = health.HealthCheckResponse.SERVING
NOT_SERVING = health.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health.HealthCheckResponse.SERVICE_UNKNOWN

UNKNOWN_SERVICE = Rejection(
    grpc.StatusCode.NOT_FOUND, 0, "service is not known here, expected the full name of a service"
)
# A watcher that reads gets the last state well within this; one that does not is not waited for.
LAST_STATE_SECONDS = 1.0


class HealthServicer:
    """A status per service name; "" stands for the data plane."""

    def __init__(self, services: Iterable[str]) -> None:
        self._status = dict.fromkeys(services, SERVING)
        self._watchers: defaultdict[str, set[asyncio.Queue[int | None]]] = defaultdict(set)
        self._closed = False
        self._unwatched = asyncio.Event()
        self._unwatched.set()

    async def Check(
        self, request: health.HealthCheckRequest, context: Context
    ) -> health.HealthCheckResponse:
        """The status of a known service; NOT_FOUND for others."""
        if request.service not in self._status:
            await refuse(context, UNKNOWN_SERVICE)
        return health.HealthCheckResponse(status=self._status[request.service])

    async def List(
        self, _request: health.HealthListRequest, _context: Context
    ) -> health.HealthListResponse:
        """The status of every service."""
        statuses = {
            name: health.HealthCheckResponse(status=status) for name, status in self._status.items()
        }
        return health.HealthListResponse(statuses=statuses)

    async def Watch(self, request: health.HealthCheckRequest, context: Context) -> None:
        """The status now and at every change; SERVICE_UNKNOWN for others, with the call open."""
        changes: asyncio.Queue[int | None] = asyncio.Queue()
        changes.put_nowait(self._status.get(request.service, SERVICE_UNKNOWN))
        if self._closed:
            changes.put_nowait(None)
        watchers = self._watchers[request.service]
        watchers.add(changes)
        self._unwatched.clear()
        try:
            while (status := await changes.get()) is not None:
                await context.write(health.HealthCheckResponse(status=status))
        finally:
            watchers.discard(changes)
            if not watchers:
                self._watchers.pop(request.service, None)
            if not self._watchers:
                self._unwatched.set()

    def set(self, service: str, status: int) -> None:
        """Change the status of a service and tell its watchers, if it differs."""
        if self._status.get(service) == status:
            return
        self._status[service] = status
        for changes in self._watchers.get(service, ()):
            changes.put_nowait(status)

    async def close(self) -> None:
        """End every watch once it has sent what it still had to say."""
        self._closed = True
        for watchers in self._watchers.values():
            for changes in watchers:
                changes.put_nowait(None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_STATE_SECONDS):
                await self._unwatched.wait()
