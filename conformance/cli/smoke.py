"""`oe-conform smoke`: one real call under a complete contract, or the fixtures on loopback."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import rich_click as click

from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT
from conformance.mutants.http.ask import MODEL
from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.server import serving
from conformance.records.ask import body_for
from conformance.records.smoke import Smoke
from conformance.records.smoke import smoke as smoke_call
from conformance.records.smoke_contract import PREFIX, given, smoke_contract
from conformance.runtimes.profile import Effect, Framing, Route
from conformance.runtimes.registry import runtime_profile


@click.command()
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the write-ahead store of the calls in this directory.",
)
def smoke(*, store: Path | None) -> int:
    """Make one bounded call on the endpoint that OE_CONFORM_SMOKE_* describe completely.

    Without any such variable, call the fixtures on loopback instead. Each call prints one line of
    JSON without any text of the request or response.
    """
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="oe-conform-") as scratch:
        directory = store or Path(scratch)
        complete = True
        for made in _calls(environment, directory):
            click.echo(made.text)
            complete = complete and made.complete
    return CONFORMANT if complete else NOT_CONFORMANT


def _calls(environment: Mapping[str, str], store: Path) -> Iterator[Smoke]:
    if given(environment):
        yield smoke_call(smoke_contract(environment, runtime_profile), environment, store)
        return
    with serving() as server:
        for route in fixture_profile().routes:
            for name in _routes(route):
                words = fixture_environment(server.origin, name)
                yield smoke_call(smoke_contract(words, lambda _: fixture_profile()), words, store)


def _routes(route: Route) -> Iterator[str]:
    """The names of a route's ways to answer, as the contract spells them."""
    if route.effect is not Effect.INFERENCE or body_for(route) is None:
        return
    if route.unary is not Framing.NONE:
        yield route.name
    if route.stream is not Framing.NONE:
        yield f"{route.name}.stream"


def fixture_environment(origin: str, route: str) -> dict[str, str]:
    """A complete contract for a call of the right server."""
    profile = fixture_profile()
    words = {
        "ENDPOINT": origin,
        "RUNTIME": profile.name,
        "RUNTIME_BUILD": profile.build,
        "ROUTE": route,
        "MODEL_ID": MODEL,
        "MODEL_REVISION": "1",
        "BACKEND_NAME": "scripted",
        "BACKEND_BUILD": "1",
        "CONFIGURATION_DIGEST": f"sha256:{profile.digest}",
        "ALLOW_LOOPBACK": "1",
    }
    return {PREFIX + name: value for name, value in words.items()}
