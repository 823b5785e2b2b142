"""The one service of the first drafts: today's servicers under its name, without today's extras."""

from __future__ import annotations

from typing import Any

import grpc

from oe_wire.services import SERVICES

SINGLE = "openengine.v1.OpenEngine"
# What those drafts called otherwise, or did not have.
_RENAMED = {"GetServerInfo": "GetEngineInfo"}


def single_handlers(inference: object, control: object) -> grpc.GenericRpcHandler[Any, Any]:
    """A handler for every RPC of both servicers at the paths of the one service."""
    bound: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for service, servicer in (
        ("openengine.v1.Inference", inference),
        ("openengine.v1.Control", control),
    ):
        for method in SERVICES[service]:
            name = _RENAMED.get(method.name, method.name)
            if not hasattr(servicer, name):
                continue
            make = (
                grpc.unary_stream_rpc_method_handler
                if method.server_streaming
                else grpc.unary_unary_rpc_method_handler
            )
            bound[name] = make(
                getattr(servicer, name),
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
    return grpc.method_handlers_generic_handler(SINGLE, bound)
