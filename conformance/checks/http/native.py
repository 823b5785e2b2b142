"""What the checks of the servers' native routes share: a case for each route of a contract."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.http.check import HttpTable
from conformance.checks.http.probe import HttpProbe
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Framing, Route


def routes_of(declared: HttpDeclared, contract: str, *, stream: bool | None = None) -> list[Route]:
    """The routes that promise a contract and are there; stream: those with one, or without."""
    return [
        route
        for route in declared.runtime.routes
        if route.contract == contract
        and declared.states(route.condition)
        and (stream is None or stream == (route.stream is not Framing.NONE))
    ]


def each_route(contract: str, *params: Mapping[str, object]) -> HttpTable:
    """A table with the parameters for each route of a contract."""

    def table(declared: HttpDeclared) -> list[Case]:
        return [
            Case(params={"route": route.name, **one})
            for route in routes_of(declared, contract)
            for one in params or ({},)
        ]

    return table


def route_in(probe: HttpProbe, case: Case) -> Route:
    """The route that a case is about; skips the case when it is not there."""
    route = probe.named(str(case.params["route"]))
    if route is None:
        probe.skip("the route of this case is not there")
    return route
