"""An engine that fails: the proxy ends short requests with an EngineError after their first token.

A right engine does not fail on request, so these mutants play both the failure and the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from conformance.mutants.mutant import Answers, Behaviour, Exchange
from oe_wire import v1


def short(request: Any) -> bool:
    """Requests that the played failure hits: not those that must outlast another call."""
    return bool(2 <= request.stopping.max_tokens <= 12)


def failing(report: Callable[[Any], Iterable[Message]], *, after_token: bool = True) -> Behaviour:
    """The stream ends with an error, after its first token or before it.

    report: gets the response that a right engine would send, OVERLOADED with usage, and gives
    what is sent instead. OVERLOADED, because that excuses the request in all other checks.
    """

    async def behaviour(exchange: Exchange) -> Answers:
        sent = 0
        async for response in exchange.upstream():
            if after_token and not sent:
                yield response
            if after_token and not sent and response.HasField("token"):
                sent = len(response.token.tokens)
            if response.HasField("usage"):
                for item in report(_error(response, sent)):
                    yield item

    return behaviour


def _error(last: Any, sent: int) -> v1.GenerateResponse:
    """The failure, with the usage of what was sent; `last`: the engine's own last response."""
    error = v1.EngineError(
        code=v1.ERROR_CODE_OVERLOADED, message="the cache is full", retryable=True
    )
    response = v1.GenerateResponse(request_id=last.request_id, error=error, usage=last.usage)
    response.usage.completion_tokens = sent
    response.usage.total_tokens = response.usage.prompt_tokens + sent
    return response
