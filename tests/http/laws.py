"""Builds exchanges for tests of laws, without any server."""

from __future__ import annotations

import json
from typing import Any

from conformance.http.exchange import Chunk, End, Ending, Exchange, Request
from conformance.mutants.http.fixture import fixture_profile
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Route

DECLARED = HttpDeclared(fixture_profile(), "scripted", scripted=True)


def route(contract: str) -> Route:
    """The fixture's route for a contract."""
    found = DECLARED.route(contract)
    assert found is not None
    return found


def answered(
    contract: str,
    body: bytes,
    *,
    request: Any = None,
    status: int = 200,
    media_type: str = "application/json",
    end: End = End.COMPLETE,
) -> Exchange:
    """A finished call of the contract's route."""
    called = route(contract)
    asked = json.dumps({"model": "scripted"} | (request or {})).encode()
    return Exchange(
        called.name,
        contract,
        Request(called.method, called.path, (("content-type", "application/json"),), asked),
        Ending(0.2, end),
        status,
        "HTTP/1.1",
        (("content-type", media_type),),
        0.1,
        (Chunk(0.1, body),) if body else (),
    )


def streamed(contract: str, body: bytes, **request: Any) -> Exchange:
    """A finished stream."""
    return answered(
        contract, body, request={"stream": True, **request}, media_type="text/event-stream"
    )


def sse(*messages: Any, names: tuple[str, ...] = ()) -> bytes:
    """A stream of events; text goes out as it is."""
    parts = []
    for number, message in enumerate(messages):
        data = message if isinstance(message, str) else json.dumps(message)
        name = f"event: {names[number]}\n" if names else ""
        parts.append(f"{name}data: {data}\n\n")
    return "".join(parts).encode()
