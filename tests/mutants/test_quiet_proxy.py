"""A proxy that ends leaves nothing under way: no errors of gRPC or asyncio, then or later."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from conformance.mutants.methods import GENERATE, WATCH
from conformance.mutants.proxy import proxied
from conformance.mutants.table import MUTANTS
from conformance.wire.target import Target
from oe_wire import health, v1
from oe_wire.services import METHODS

CALLS = 9
TOKENS = 400
LIMIT = 30.0
# gRPC's own note of a client that left while a message was on its way to it: no fault, and rare.
LEFT_WHILE_WRITTEN = "ExecuteBatchError raised in core by servicer method"
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """What is logged as an error, by gRPC and asyncio too, filled in when a proxy has ended."""
    with caplog.at_level(logging.WARNING):
        yield caplog.records


def messages(records: list[logging.LogRecord]) -> list[str]:
    return [record.getMessage() for record in records]


@pytest.mark.parametrize(
    "name",
    [
        "aborted-work-goes-on",
        "abort-in-crowd-goes-on",
        "cancelled-work-goes-on",
        "idle-watch-closed",
        "watchers-end-together",
    ],
)
def test_clients_that_leave_are_no_error(
    engine: Target, errors: list[logging.LogRecord], capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """Calls that are cancelled at any point, or open when the proxy ends, are ended in silence."""
    model = _model(engine.address)
    for round_ in range(2):
        with proxied(engine.address, BY_NAME[name]) as address, ExitStack() as stack:
            channel = stack.enter_context(grpc.insecure_channel(address))
            generate = _streaming(channel, GENERATE)
            watch = _streaming(channel, WATCH)
            for number in range(CALLS):
                stream = generate(_request(f"{name}-{round_}-{number}", model), timeout=LIMIT)
                watcher = watch(health.HealthCheckRequest(), timeout=LIMIT)
                next(watcher, None)
                if number % 3:
                    next(stream, None)
                if number % 3 == 1:
                    stream.cancel()
                    watcher.cancel()
    assert [text for text in messages(errors) if not text.startswith(LEFT_WHILE_WRITTEN)] == []
    assert "Traceback" not in capfd.readouterr().err


def _request(request_id: str, model: str) -> v1.GenerateRequest:
    request = v1.GenerateRequest(request_id=request_id, model=model)
    request.token_ids.ids[:] = [1, 2, 3]
    request.stopping.max_tokens = TOKENS
    request.stopping.ignore_eos = True
    return request


def _streaming(channel: grpc.Channel, name: str) -> Any:
    method = METHODS[name]
    return channel.unary_stream(
        method.path, method.request.SerializeToString, method.response.FromString
    )


def _model(address: str) -> str:
    method = METHODS["openengine.v1.OpenEngineDiscovery/GetEngineInfo"]
    with grpc.insecure_channel(address) as channel:
        ask = channel.unary_unary(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        return str(ask(v1.GetEngineInfoRequest(), timeout=LIMIT).supported_models[0])
