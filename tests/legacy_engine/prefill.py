"""The prefill phase of the toy engine, which ends with the session."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

from oe_wire import v1
from tests.legacy_engine.behaviour import Behaviour
from tests.legacy_engine.script import write
from tests.legacy_engine.stream import STEP, Active
from tests.legacy_engine.validate import prompt_of

BACKEND = "nixl"


async def prefill(active: Active, behaviour: Behaviour) -> AsyncIterator[v1.GenerateResponse]:
    """One token and the reference to the session."""
    prompt = prompt_of(active.request)
    await asyncio.sleep(STEP)
    script = write(active.request, prompt, 0, 1, behaviour)
    if behaviour.prefill_token:
        token = v1.TokenOutput(output_index=0, text=script.texts[0])
        token.tokens.append(v1.TokenInfo(token_id=script.tokens[0]))
        yield v1.GenerateResponse(request_id=active.request_id, token=token)
    session = v1.KvSessionRef(session_id=uuid.uuid4().hex, transfer_backend=BACKEND)
    ready = v1.GenerateResponse(
        request_id=active.request_id, prefill_ready=v1.PrefillReady(kv_session=session)
    )
    if behaviour.prefill_usage:
        ready.usage.CopyFrom(
            v1.Usage(prompt_tokens=len(prompt), completion_tokens=1, total_tokens=len(prompt) + 1)
        )
    yield ready
