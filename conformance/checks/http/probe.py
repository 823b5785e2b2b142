"""What the body of an HTTP check may do: call routes of the profile, or send bytes of its own.

Every call goes through here, so that it is counted, recorded and judged by all laws.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance.checks.base import BaseProbe, Interrupted, Spending
from conformance.errors import HarnessError, UnreachableError
from conformance.http.client import HttpConnection, LiveExchange
from conformance.http.exchange import End, Exchange, Headers, Request
from conformance.http.limits import Limits
from conformance.http.raw import Step, send_raw
from conformance.laws.http import judge_exchange
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Effect, Route
from conformance.runtimes.usage import tokens_of

JSON_TYPE = ("content-type", "application/json")

# A JSON value, or the very bytes of a body.
Body = Mapping[str, Any] | list[Any] | bytes | None


class HttpProbe(BaseProbe[Exchange, HttpDeclared]):
    """The hands of one check in one worker.

    listener: told every finished call. slow_factor: the operator's widening of every limit.
    """

    def __init__(
        self,
        requirement: str,
        connection: HttpConnection,
        declared: HttpDeclared,
        spending: Spending,
        stop: threading.Event,
        *,
        slow_factor: float = 1.0,
        listener: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        super().__init__(requirement, declared, spending, stop)
        self.connection = connection
        self.slow_factor = slow_factor
        self._listener = listener
        self._live: list[LiveExchange] = []

    # Calls

    def call(
        self,
        route: Route,
        body: Body = None,
        *,
        headers: Headers = (),
        method: str = "",
        limits: Limits | None = None,
    ) -> Exchange:
        """Call a route to its end. body: JSON, or bytes that go out as they are. method: another
        one than the route's.
        """
        started = self.start(route, body, headers=headers, method=method, limits=limits)
        return self.finish(started)

    def start(
        self,
        route: Route,
        body: Body = None,
        *,
        headers: Headers = (),
        method: str = "",
        limits: Limits | None = None,
    ) -> LiveExchange:
        """Start a call and return while it runs; `finish` must be called on it."""
        self._begin(route)
        request = request_of(route, body, headers, method)
        live = self.connection.start(
            request, route=route.name, contract=route.contract, limits=limits
        )
        self._live.append(live)
        return live

    def finish(self, live: LiveExchange) -> Exchange:
        """Wait for the end of a call; record and judge it. Raises UnreachableError when there was
        no connection.
        """
        exchange = self.connection.finish(live)
        if live in self._live:
            self._live.remove(live)
        return self._done(exchange)

    def raw(self, route: Route, steps: Iterable[Step], *, limits: Limits | None = None) -> Exchange:
        """Send exactly these bytes, with these pauses, on a connection of its own."""
        self._begin(route)
        request = Request(route.method, route.path)
        exchange = send_raw(
            self.connection.target,
            steps,
            request=request,
            route=route.name,
            contract=route.contract,
            limits=limits or self.connection.limits,
        )
        return self._done(exchange)

    def route(self, contract: str) -> Route:
        """The runtime's route for a contract; skips the case when it has none."""
        route = self.declared.route(contract)
        if route is None:
            self.skip(f"no route for {contract} on this target")
        return route

    def named(self, name: str) -> Route | None:
        """The route of this name, when the runtime has it and its condition is stated."""
        for route in self.declared.runtime.routes:
            if route.name == name and self.declared.states(route.condition):
                return route
        return None

    def fields(self, **more: Any) -> dict[str, Any]:
        """The request fields that every inference call has, and these."""
        own = {"model": self.declared.model_name} if self.declared.model_name else {}
        return own | more

    def seconds(self, limit: float) -> float:
        """A limit that a requirement states, widened by the operator's factor."""
        return limit * self.slow_factor

    def new_case(self) -> None:
        """Forget the calls of the last case; end what it left running."""
        for live in self._live:
            live.cancel()
            self.connection.finish(live)
        self._live.clear()
        super().new_case()

    def _begin(self, route: Route) -> None:
        if self._stop.is_set():
            raise Interrupted
        if route.effect is Effect.STATE_CHANGE:
            raise HarnessError(f"route {route.name} changes the target's state: never called")
        if route.effect not in self.declared.allowed:
            self.skip(f"the effect {route.effect.value} is not allowed (--allow)")
        self.spending.requests += 1
        self.methods.add(route.path)

    def _done(self, exchange: Exchange) -> Exchange:
        self.record(exchange)
        if exchange.ending.kind is End.CONNECT:
            raise UnreachableError(f"{exchange.name}: no connection to {self._address}")
        if self._stop.is_set():
            raise Interrupted
        return exchange

    def record(self, exchange: Exchange) -> None:
        """Count a finished call, keep it, tell of it, and let every law judge it."""
        self._listener(exchange)
        self.spending.tokens += tokens_of(exchange)
        self.log.transcripts.append(exchange)
        for requirement, ruling in judge_exchange(exchange, self.declared).items():
            self.log.rulings.setdefault(requirement, []).append((ruling, exchange))

    @property
    def _address(self) -> str:
        return self.connection.target.address


def request_of(route: Route, body: Body, headers: Headers = (), method: str = "") -> Request:
    """The request for a route: JSON in UTF-8 with its content type, or bytes as they are."""
    if body is None:
        return Request(method or route.method, route.path, headers)
    if isinstance(body, bytes):
        return Request(method or route.method, route.path, headers, body)
    # Lone surrogates have no UTF-8; as escapes they are legal JSON, and what some clients send.
    text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    data = text.encode("utf-8", errors="surrogatepass")
    names = {name.lower() for name, _ in headers}
    typed = headers if JSON_TYPE[0] in names else (JSON_TYPE, *headers)
    return Request(method or route.method, route.path, typed, data)
