"""Every RPC of the wire as data, and servicers bound to a gRPC server through that data."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

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

    An RPC that the servicer has no attribute for is left out and answers UNIMPLEMENTED.
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
        behaviour,
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )
