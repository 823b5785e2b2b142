"""Every RPC of the wire as data, and servicers bound to a gRPC server through that data."""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import DecodeError, Message

from oe_wire.descriptors import FILE_NAMES, message_class, pool


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC. `service` is fully qualified; no RPC of the wire streams its requests."""

    service: str
    name: str
    request: type[Message]
    response: type[Message]
    server_streaming: bool

    @property
    def full_name(self) -> str:
        """Service and name: `openengine.v1.Inference/Generate`."""
        return f"{self.service}/{self.name}"

    @property
    def path(self) -> str:
        """The HTTP/2 path: `/openengine.v1.Inference/Generate`."""
        return f"/{self.full_name}"


def _methods(service: ServiceDescriptor) -> tuple[Method, ...]:
    return tuple(
        Method(
            service=service.full_name,
            name=method.name,
            request=message_class(method.input_type.full_name),
            response=message_class(method.output_type.full_name),
            server_streaming=method.server_streaming,
        )
        for method in service.methods
    )


SERVICES: Mapping[str, tuple[Method, ...]] = MappingProxyType(
    {
        service.full_name: _methods(service)
        for file_name in FILE_NAMES
        for service in pool.FindFileByName(file_name).services_by_name.values()
    }
)
METHODS: Mapping[str, Method] = MappingProxyType(
    {method.full_name: method for methods in SERVICES.values() for method in methods}
)


def handlers(service: str, servicer: object) -> "grpc.GenericRpcHandler[Any, Any]":
    """A handler for a sync or aio server that calls the servicer's methods by RPC name.

    An RPC that the servicer has no attribute for is left out and answers UNIMPLEMENTED. Bytes that
    are no request answer INVALID_ARGUMENT: grpcio alone makes that UNKNOWN, with a traceback in the
    server's log for each.
    ValueError for a service the wire lacks, TypeError for an attribute that cannot be called.
    """
    if service not in SERVICES:
        raise ValueError(f"service {service!r} is not one of {', '.join(sorted(SERVICES))}")
    bound = {
        method.name: _handler(method, servicer)
        for method in SERVICES[service]
        if hasattr(servicer, method.name)
    }
    return grpc.method_handlers_generic_handler(service, bound)


def _handler(method: Method, servicer: object) -> "grpc.RpcMethodHandler[Any, Any]":
    behaviour = getattr(servicer, method.name)
    if not callable(behaviour):
        raise TypeError(
            f"{type(servicer).__name__}.{method.name} is a {type(behaviour).__name__}, "
            f"expected a method for {method.full_name}"
        )
    make = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        _refusing(behaviour, method.request.DESCRIPTOR.full_name),
        request_deserializer=_parser(method.request),
        response_serializer=method.response.SerializeToString,
    )


_MALFORMED = object()


def _parser(request: type[Message]) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        try:
            return request.FromString(data)
        except DecodeError:
            return _MALFORMED

    return parse


def _refusing(behaviour: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The behaviour, of whichever of the four kinds, but not for malformed requests."""
    refusal = (grpc.StatusCode.INVALID_ARGUMENT, f"the request is not a {name}")

    async def coroutine(request: object, context: Any) -> object:
        if request is _MALFORMED:
            await context.abort(*refusal)
        return await behaviour(request, context)

    async def generator(request: object, context: Any) -> AsyncIterator[object]:
        if request is _MALFORMED:
            await context.abort(*refusal)
        async for message in behaviour(request, context):
            yield message

    def plain(request: object, context: Any) -> object:
        if request is _MALFORMED:
            context.abort(*refusal)
        return behaviour(request, context)

    if inspect.iscoroutinefunction(behaviour):
        return coroutine
    return generator if inspect.isasyncgenfunction(behaviour) else plain
