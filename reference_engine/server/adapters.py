"""openengine.v1.OpenEngineAdapters, whose RPCs Control has under the same names."""

from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.errors import (
    AdapterChangedError,
    AdapterConflictError,
    AdapterError,
    TooManyAdaptersError,
    UnknownAdapterError,
    UnsupportedAdapterError,
)
from reference_engine.lora.adapter import Adapter
from reference_engine.lora.registry import AdapterRegistry
from reference_engine.server.rejection import Rejection, invalid, refuse, unsupported

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

NO_ADAPTERS = Rejection(
    grpc.StatusCode.UNIMPLEMENTED, 0, "the profile adapters is not advertised: LoRA is switched off"
)


def adapter_rejection(error: AdapterError) -> Rejection:
    """The refusal that tells the caller of the error."""
    text = str(error)
    match error:
        case UnknownAdapterError():
            return Rejection(grpc.StatusCode.NOT_FOUND, v1.ERROR_CODE_MODEL_NOT_FOUND, text)
        case AdapterConflictError():
            return Rejection(grpc.StatusCode.ALREADY_EXISTS, v1.ERROR_CODE_DUPLICATE_REQUEST, text)
        case TooManyAdaptersError():
            status, code = grpc.StatusCode.RESOURCE_EXHAUSTED, v1.ERROR_CODE_OVERLOADED
            return Rejection(status, code, text, retryable=True)
        case AdapterChangedError():
            return Rejection(grpc.StatusCode.FAILED_PRECONDITION, 0, text)
        case UnsupportedAdapterError():
            return unsupported(text)
    return invalid(text)


class AdapterRpcs:
    """The three RPCs over one registry; UNIMPLEMENTED without one."""

    def __init__(self, registry: AdapterRegistry | None) -> None:
        self._registry = registry

    async def LoadLora(self, request: v1.LoadLoraRequest, context: Context) -> v1.LoadLoraResponse:
        """Load an adapter; equal calls find it loaded."""
        registry = await self._available(context)
        if not request.HasField("adapter"):
            await refuse(context, invalid("adapter is not set, expected an adapter"))
        wanted = request.adapter
        try:
            adapter, before = await registry.load(
                wanted.lora_id, wanted.lora_name, wanted.source_path
            )
        except AdapterError as error:
            await refuse(context, adapter_rejection(error))
        return v1.LoadLoraResponse(adapter=_message(adapter), already_loaded=before)

    async def UnloadLora(
        self, request: v1.UnloadLoraRequest, context: Context
    ) -> v1.UnloadLoraResponse:
        """Forget an adapter; requests that use it finish with it."""
        registry = await self._available(context)
        try:
            adapter = registry.unload(request.lora_name)
        except AdapterError as error:
            await refuse(context, adapter_rejection(error))
        return v1.UnloadLoraResponse(adapter=_message(adapter))

    async def ListLoras(
        self, _request: v1.ListLorasRequest, context: Context
    ) -> v1.ListLorasResponse:
        """The loaded adapters."""
        registry = await self._available(context)
        return v1.ListLorasResponse(adapters=map(_message, registry.adapters()))

    async def _available(self, context: Context) -> AdapterRegistry:
        if self._registry is None:
            await refuse(context, NO_ADAPTERS)
        return self._registry


def _message(adapter: Adapter) -> v1.LoraAdapter:
    return v1.LoraAdapter(lora_id=adapter.lora_id, lora_name=adapter.name, source_path=adapter.path)
