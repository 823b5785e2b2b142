"""openengine.v1.Inference: one request in, its events out."""

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeAlias

import grpc

from oe_wire import v1
from reference_engine.engine.output import Event, is_last, num_candidates
from reference_engine.engine.stream import Stream
from reference_engine.errors import AdapterError
from reference_engine.lora.adapter import Adapter
from reference_engine.server.adapters import adapter_rejection
from reference_engine.server.convert import to_request, to_response
from reference_engine.server.frontend import Frontend
from reference_engine.server.metadata import Metadata, priority_of, rank_of
from reference_engine.server.rejection import Rejection, refuse
from reference_engine.server.stall import StallWatch
from reference_engine.server.validate import prompt_problem, validate

log = logging.getLogger(__name__)

# Tokenizing runs at about 1.5 MB/s; longer texts would hold up the event loop by more than 20 ms.
LONG_TEXT = 32 * 1024
# A candidate takes 1.4 us; a scored prompt of 2,000 tokens can have 2,000,000 of them.
MANY_CANDIDATES = 4_000

Context: TypeAlias = "grpc.aio.ServicerContext[v1.GenerateRequest, v1.GenerateResponse]"


class InferenceServicer:
    """Validate, admit, accept, stream. A caller that goes away cancels its request."""

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend
        self._stalls = StallWatch(frontend.deployment.limits.stall_timeout_ms)
        self._closing: set[asyncio.Task[None]] = set()

    async def Generate(self, request: v1.GenerateRequest, context: Context) -> None:
        """Stream the events of a request; every refusal comes before the first message."""
        metadata = context.invocation_metadata() or ()
        problem = validate(request, metadata, self._frontend.deployment)
        if problem is None:
            rank = rank_of(metadata)
            problem = self._frontend.admission_problem(request.request_id, rank)
        if problem is not None:
            await refuse(context, problem)
        try:
            async with AsyncExitStack() as holds:
                adapter = await holds.enter_async_context(self._frontend.adapter(request.lora_name))
                accepted = await self._accept(request, metadata, adapter)
                if isinstance(accepted, Rejection):
                    await refuse(context, accepted)
                else:
                    await self._stream(request.request_id, accepted, context, holds)
        except AdapterError as error:
            await refuse(context, adapter_rejection(error))

    async def _accept(
        self, request: v1.GenerateRequest, metadata: Metadata, adapter: Adapter | None
    ) -> Stream | Rejection:
        """Submit the request; nothing may await between the last check and the id's entry."""
        frontend = self._frontend
        prompt = await self._prompt(request)
        grammar = (
            await frontend.guides.compile(request.guided) if request.HasField("guided") else None
        )
        if isinstance(grammar, Rejection):
            return grammar
        problem = prompt_problem(len(prompt), request, frontend.deployment)
        rank = rank_of(metadata)
        problem = problem or frontend.admission_problem(request.request_id, rank)
        if problem is not None:
            return problem
        priority = priority_of(metadata) if frontend.deployment.limits.supports_priority else 0
        ours = to_request(request, prompt, priority, grammar, adapter)
        stream = frontend.engine.submit(ours, rank, self._fail_after(request))
        frontend.table.add(request.request_id, stream)
        return stream

    def _fail_after(self, request: v1.GenerateRequest) -> int | None:
        """Tokens after which a fault of a test run hits the request; None when none does."""
        fault = self._frontend.faults.take(v1.FAULT_KIND_REQUEST_FAILS, request.request_id)
        return None if fault is None else fault.after_tokens

    async def _prompt(self, request: v1.GenerateRequest) -> list[int]:
        if request.HasField("token_ids"):
            return list(request.token_ids.ids)
        encode = partial(self._frontend.tokenizer.encode, add_special_tokens=True)
        if len(request.prompt) <= LONG_TEXT:
            return encode(request.prompt)
        return await asyncio.to_thread(encode, request.prompt)

    async def _message(self, request_id: str, event: Event) -> v1.GenerateResponse:
        """The message of an event; a large one is made beside the loop, for the others' sake."""
        tokenizer = self._frontend.tokenizer
        if num_candidates(event) <= MANY_CANDIDATES:
            return to_response(request_id, event, tokenizer)
        return await asyncio.to_thread(to_response, request_id, event, tokenizer)

    async def _stream(
        self, request_id: str, stream: Stream, context: Context, holds: AsyncExitStack
    ) -> None:
        frontend = self._frontend
        ended = False
        on_stall = partial(self._stalled, request_id, stream, holds)
        try:
            # Tells the caller that the request is accepted, long before the first token.
            await context.send_initial_metadata(())
            async for event in stream.events():
                message = await self._message(request_id, event)
                if is_last(event):
                    # The id is free once the stream has ended, so free it before the caller knows.
                    ended = True
                    frontend.table.finish(request_id, stream)
                await self._stalls.write(context.write(message), on_stall)
        finally:
            if not ended:
                frontend.table.finish(request_id, stream)
                frontend.engine.cancel(stream)

    def _stalled(self, request_id: str, stream: Stream, holds: AsyncExitStack) -> None:
        """Free everything of a request whose reader does not read, but for its last message."""
        log.warning("a stream was not read for too long; its request ends")
        stream.stall()
        self._frontend.table.finish(request_id, stream)
        self._frontend.engine.cancel(stream)
        # The call itself stays open for as long as its reader likes; an adapter must not.
        closing = asyncio.create_task(holds.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
