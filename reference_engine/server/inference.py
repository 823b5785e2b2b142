"""openengine.v1.Inference: one request in, its events out."""

import asyncio
from functools import partial
from typing import TypeAlias

import grpc

from oe_wire import v1
from reference_engine.engine.output import is_last
from reference_engine.engine.stream import Stream
from reference_engine.server.convert import to_request, to_response
from reference_engine.server.frontend import Frontend
from reference_engine.server.rejection import Rejection, refuse
from reference_engine.server.validate import prompt_problem, validate

# Tokenizing runs at about 1.5 MB/s; longer texts would hold up the event loop by more than 20 ms.
LONG_TEXT = 32 * 1024

Context: TypeAlias = "grpc.aio.ServicerContext[v1.GenerateRequest, v1.GenerateResponse]"


class InferenceServicer:
    """Validate, admit, accept, stream. A caller that goes away cancels its request."""

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend

    async def Generate(self, request: v1.GenerateRequest, context: Context) -> None:
        """Stream the events of a request; every refusal comes before the first message."""
        metadata = context.invocation_metadata() or ()
        problem = validate(request, metadata, self._frontend.deployment)
        problem = problem or self._frontend.admission_problem(request.request_id)
        if problem is not None:
            await refuse(context, problem)
        accepted = await self._accept(request)
        if isinstance(accepted, Rejection):
            await refuse(context, accepted)
        else:
            await self._stream(request.request_id, accepted, context)

    async def _accept(self, request: v1.GenerateRequest) -> Stream | Rejection:
        """Submit the request; nothing may await between the last check and the id's entry."""
        frontend = self._frontend
        prompt = await self._prompt(request)
        problem = prompt_problem(len(prompt), request, frontend.deployment)
        problem = problem or frontend.admission_problem(request.request_id)
        if problem is not None:
            return problem
        stream = frontend.engine.submit(to_request(request, prompt))
        frontend.table.add(request.request_id, stream)
        return stream

    async def _prompt(self, request: v1.GenerateRequest) -> list[int]:
        if request.HasField("token_ids"):
            return list(request.token_ids.ids)
        encode = partial(self._frontend.tokenizer.encode, add_special_tokens=True)
        if len(request.prompt) <= LONG_TEXT:
            return encode(request.prompt)
        return await asyncio.to_thread(encode, request.prompt)

    async def _stream(self, request_id: str, stream: Stream, context: Context) -> None:
        frontend = self._frontend
        ended = False
        try:
            # Tells the caller that the request is accepted, long before the first token.
            await context.send_initial_metadata(())
            async for event in stream.events():
                message = to_response(request_id, event, frontend.tokenizer)
                if is_last(event):
                    # The id is free once the stream has ended, so free it before the caller knows.
                    ended = True
                    frontend.table.finish(request_id, stream)
                await context.write(message)
        finally:
            if not ended:
                frontend.table.finish(request_id, stream)
                frontend.engine.cancel(stream)
