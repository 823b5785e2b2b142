"""The few moves that most mutants are made of: edit, repair, answer, refuse, forgive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from conformance.mutants.mutant import Answers, Behaviour, Exchange, Refused
from oe_wire import v1
from oe_wire.services import METHODS

Edit = Callable[[Any], None]
EditFor = Callable[[Any, Any], None]
Condition = Callable[[Any], bool]


async def forward(exchange: Exchange) -> Answers:
    """What the proxy does without a mutant."""
    async for message in exchange.upstream():
        yield message


def edited(edit: Edit) -> Behaviour:
    """Every message of the answer is changed in place."""
    return edited_for(lambda message, _request: edit(message))


def edited_for(edit: EditFor) -> Behaviour:
    """As `edited`, with the request as second argument."""

    async def behaviour(exchange: Exchange) -> Answers:
        async for message in exchange.upstream():
            edit(message, exchange.request)
            yield message

    return behaviour


def repaired(repair: Edit) -> Behaviour:
    """The request is changed before the engine sees it, so that it accepts what it should not."""

    async def behaviour(exchange: Exchange) -> Answers:
        repair(exchange.request)
        async for message in exchange.upstream():
            yield message

    return behaviour


def when(condition: Condition, behaviour: Behaviour) -> Behaviour:
    """The behaviour for requests that meet the condition; the others are forwarded."""

    def chosen(exchange: Exchange) -> Answers:
        return (behaviour if condition(exchange.request) else forward)(exchange)

    return chosen


def answered(answer: Callable[[Any], Message]) -> Behaviour:
    """The engine is not asked; the answer is made from the request."""

    async def behaviour(exchange: Exchange) -> Answers:
        yield answer(exchange.request)

    return behaviour


def refused(refusal: Refused) -> Behaviour:
    """The engine is not asked; the call ends with this status."""

    def answer(_: Any) -> NoReturn:
        raise refusal

    return answered(answer)


def forgiven(code: grpc.StatusCode, instead: Behaviour) -> Behaviour:
    """Where the engine refuses the call with `code`, do something else instead."""

    async def behaviour(exchange: Exchange) -> Answers:
        try:
            async for message in exchange.upstream():
                yield message
        except Refused as refusal:
            if refusal.code is not code:
                raise
        else:
            return
        async for message in instead(exchange):
            yield message

    return behaviour


def recoded(change: Callable[[Refused, Any], Refused]) -> Behaviour:
    """Every refusal by the engine is replaced by `change(refusal, request)`."""

    async def behaviour(exchange: Exchange) -> Answers:
        try:
            async for message in exchange.upstream():
                yield message
        except Refused as refusal:
            raise change(refusal, exchange.request) from refusal

    return behaviour


def refusal(code: grpc.StatusCode, error: str, details: str) -> Refused:
    """A refusal as a right engine words it, with the trailers that go with the status.

    error: name of the ErrorCode without its prefix.
    """
    name = v1.ErrorCode.Name(v1.ErrorCode.Value(f"ERROR_CODE_{error}"))
    trailers = (("openengine-error-code", name), ("openengine-error-retryable", "false"))
    return Refused(code, details, trailers)


def unimplemented() -> Behaviour:
    """The RPC is not there."""
    return refused(Refused(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))


async def served_model(exchange: Exchange) -> str:
    """The name of the engine's first model; asked once for each proxy."""
    if "model" not in exchange.state:
        method = METHODS["openengine.v1.OpenEngineDiscovery/GetEngineInfo"]
        info = await exchange.ask(method, v1.GetEngineInfoRequest())
        exchange.state["model"] = info.supported_models[0]
    return str(exchange.state["model"])


async def model_facts(exchange: Exchange) -> v1.ModelInfo:
    """The engine's true ModelInfo of its first model."""
    if "facts" not in exchange.state:
        name = await served_model(exchange)
        method = METHODS["openengine.v1.OpenEngineDiscovery/GetModelInfo"]
        request = v1.GetModelInfoRequest(model=name)
        exchange.state["facts"] = await exchange.ask(method, request)
    facts: v1.ModelInfo = exchange.state["facts"]
    return facts
