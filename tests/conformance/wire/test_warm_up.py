from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from conformance.wire.declared import Declared, TargetClass
from conformance.wire.pace import Pace
from conformance.wire.warm_up import PROMPT, PROMPT_IDS, warm_up
from oe_wire import v1
from tests.conformance.wire.servers import Connect, Serve


def declared(**model: Any) -> Declared:
    info = v1.ModelInfo(served_model_name="m", **model)
    return Declared(TargetClass.LEGACY, "v0.1.0", model=info, model_name="m")


class Generator:
    """Generate that sends two events of tokens; refuses what `refuses` says."""

    def __init__(self, refuses: Callable[[v1.GenerateRequest], bool] = lambda _: False) -> None:
        self.requests: list[v1.GenerateRequest] = []
        self.refuses = refuses

    def __call__(self, request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        self.requests.append(request)
        if self.refuses(request):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        for ids in ((7, 5), (7, 900)):
            infos = [v1.TokenInfo(token_id=number) for number in ids]
            yield v1.GenerateResponse(token=v1.TokenOutput(tokens=infos))


def info(request: Any, context: grpc.ServicerContext) -> v1.ServerInfo:
    return v1.ServerInfo()


def test_pace_and_known_tokens(serve: Serve, connect: Connect) -> None:
    """The warm-up measures and gives the output's token ids once each, ascending."""
    generate = Generator()
    address = serve({"Inference": {"Generate": generate}, "Control": {"GetServerInfo": info}})
    pace, known = warm_up(connect(address), declared(supports_text_input=True), 3.0)
    assert known == (5, 7, 900)
    assert pace.slow_factor == 3.0
    assert pace.unary > 0
    assert pace.first_token > 0
    assert pace.per_token >= 0
    assert pace != Pace(slow_factor=3.0)
    request = generate.requests[0]
    assert request.prompt == PROMPT
    assert request.model == "m"
    assert request.sampling.temperature == 0
    assert request.stopping.ignore_eos
    assert 0 < request.stopping.max_tokens < 100
    assert len({request.request_id for request in generate.requests}) == len(generate.requests)


def test_token_ids_where_text_is_not_taken(serve: Serve, connect: Connect) -> None:
    """A model without text input is sent small token ids."""
    generate = Generator()
    address = serve({"Inference": {"Generate": generate}})
    model = {"supports_text_input": False, "supports_token_ids_input": True}
    warm_up(connect(address), declared(**model), 1.0)
    assert tuple(generate.requests[0].token_ids.ids) == PROMPT_IDS


def test_engine_without_ignore_eos(serve: Serve, connect: Connect) -> None:
    """An engine that refuses ignore_eos is asked without it."""
    generate = Generator(lambda request: request.stopping.ignore_eos)
    address = serve({"Inference": {"Generate": generate}})
    _, known = warm_up(connect(address), declared(supports_text_input=True), 1.0)
    assert known == (5, 7, 900)


@pytest.mark.parametrize("services", [{}, {"Inference": {"Generate": Generator(lambda _: True)}}])
def test_failures_leave_the_defaults(serve: Serve, connect: Connect, services: Any) -> None:
    """An engine on which nothing works is not judged here."""
    pace = warm_up(connect(serve(services)), declared(supports_text_input=True), 1.0)
    assert pace == (Pace(), ())


def test_engine_that_does_not_generate(serve: Serve, connect: Connect) -> None:
    """A model without any input is sent no request."""
    generate = Generator()
    address = serve({"Inference": {"Generate": generate}})
    model = {"supports_text_input": False, "supports_token_ids_input": False}
    _, known = warm_up(connect(address), declared(**model), 1.0)
    assert known == ()
    assert generate.requests == []


def test_unreachable_engine(connect: Connect, refused: str) -> None:
    """Even a lost connection raises nothing here."""
    assert warm_up(connect(refused), declared(supports_text_input=True), 1.0) == (Pace(), ())


def test_discovery_is_measured_on_profile_aware_engines(serve: Serve, connect: Connect) -> None:
    """The unary figure comes from an RPC that the class of target serves."""
    calls: list[str] = []

    def capabilities(request: Any, context: grpc.ServicerContext) -> v1.Capabilities:
        calls.append("GetCapabilities")
        return v1.Capabilities()

    address = serve({"OpenEngineDiscovery": {"GetCapabilities": capabilities}})
    aware = Declared(TargetClass.PROFILE_AWARE, "v0.1.0")
    pace, _ = warm_up(connect(address), aware, 0.1)
    assert len(calls) > 1
    assert pace.unary != Pace().unary
    assert pace.slow_factor == 1.0
