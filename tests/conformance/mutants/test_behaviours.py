from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

import grpc
import pytest

from conformance.mutants.behaviours import (
    answered,
    edited,
    edited_for,
    forgiven,
    recoded,
    refusal,
    refused,
    repaired,
    when,
)
from conformance.mutants.mutant import Behaviour, Envelope, Exchange, Refused
from conformance.wire.transcript import Metadata
from oe_wire import v1
from oe_wire.services import METHODS, Method

GENERATE = METHODS["openengine.v1.Inference/Generate"]
Engine = Callable[[v1.GenerateRequest], Iterable[v1.GenerateResponse]]


def stream(request: v1.GenerateRequest) -> Iterable[v1.GenerateResponse]:
    """Two tokens and an end with usage; a request without a model is refused."""
    if not request.model:
        raise refusal(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND", "no model")
    for text in "ab":
        token = v1.TokenOutput(output_index=0, text=text, tokens=[v1.TokenInfo(token_id=7)])
        yield v1.GenerateResponse(request_id=request.request_id, token=token)
    usage = v1.Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5)
    end = v1.GenerationFinished(output_index=0, reason=v1.FINISH_REASON_LENGTH)
    yield v1.GenerateResponse(request_id=request.request_id, finished=end, usage=usage)


def play(behaviour: Behaviour, model: str = "m", engine: Engine = stream) -> list[Any]:
    """What a client sees of one call."""

    async def relay(
        method: Method, data: bytes, metadata: Metadata, envelope: Envelope
    ) -> AsyncGenerator[bytes, None]:
        for message in engine(v1.GenerateRequest.FromString(data)):
            yield message.SerializeToString()

    async def run() -> list[Any]:
        request = v1.GenerateRequest(request_id="r", model=model)
        exchange = Exchange(GENERATE, request, (), relay, {}, "127.0.0.1:1")
        try:
            return [message async for message in behaviour(exchange)]
        finally:
            await exchange.close()

    return asyncio.run(run())


def test_edited_changes_every_message() -> None:
    """The edit sees each message, with the request where it asks for it."""

    def rename(message: Any) -> None:
        message.request_id = "x"

    def copy_model(message: Any, request: Any) -> None:
        message.request_id = request.model

    assert [m.request_id for m in play(edited(rename))] == ["x", "x", "x"]
    assert [m.request_id for m in play(edited_for(copy_model))] == ["m", "m", "m"]


def test_repaired_request_is_what_the_engine_sees() -> None:
    """A request that the engine would refuse is served after the repair."""

    def name_model(request: Any) -> None:
        request.model = "m"

    assert len(play(repaired(name_model), model="")) == 3


def test_when_leaves_other_requests_alone() -> None:
    """The behaviour is for requests that meet the condition only."""
    never = refused(Refused(grpc.StatusCode.ABORTED))
    chosen = when(lambda request: request.model == "bad", never)
    assert len(play(chosen)) == 3
    with pytest.raises(Refused):
        play(chosen, model="bad")


def test_forgiven_replaces_the_one_refusal() -> None:
    """A refusal with the code is replaced; one with another code stays."""
    instead = answered(lambda _: v1.GenerateResponse(request_id="instead"))
    forgiving = forgiven(grpc.StatusCode.NOT_FOUND, instead)
    assert [m.request_id for m in play(forgiving, model="")] == ["instead"]
    assert len(play(forgiving)) == 3
    with pytest.raises(Refused, match="NOT_FOUND"):
        play(forgiven(grpc.StatusCode.INTERNAL, instead), model="")


def test_recoded_changes_refusals_only() -> None:
    """The status of a refusal is changed; a served request is not."""
    changed = recoded(lambda old, request: Refused(grpc.StatusCode.UNKNOWN, old.details))
    assert len(play(changed)) == 3
    with pytest.raises(Refused, match="UNKNOWN: no model"):
        play(changed, model="")


def test_refusal_carries_the_trailers_of_a_right_engine() -> None:
    """The code's name is that of the enum, so a typing error in a mutant is an error."""
    made = refusal(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND", "gone")
    assert dict(made.trailers)["openengine-error-code"] == "ERROR_CODE_MODEL_NOT_FOUND"
    with pytest.raises(ValueError, match="MODEL_NOT_FOND"):
        refusal(grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOND", "gone")
