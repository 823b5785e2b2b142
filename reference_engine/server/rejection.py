"""Refusals before acceptance: a status, an error code for the trailers, and a message.

A message names the field, what kind of value it had and what was expected. It never repeats
prompt text, names or metadata values, which may be private.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import grpc

from oe_wire import v1

CODE_TRAILER = "openengine-error-code"
RETRYABLE_TRAILER = "openengine-error-retryable"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a call is refused. `code` is a value of ErrorCode, 0 when none fits."""

    status: grpc.StatusCode
    code: int
    message: str
    retryable: bool = False

    @property
    def trailers(self) -> tuple[tuple[str, str], ...]:
        """Trailing metadata that says the error code and whether a retry can help."""
        if not self.code:
            return ()
        return (
            (CODE_TRAILER, v1.ErrorCode.Name(self.code)),
            (RETRYABLE_TRAILER, "true" if self.retryable else "false"),
        )


def invalid(message: str) -> Rejection:
    """Malformed, missing or out of range."""
    return Rejection(grpc.StatusCode.INVALID_ARGUMENT, v1.ERROR_CODE_INVALID_ARGUMENT, message)


def unsupported(message: str) -> Rejection:
    """A legal option that this engine or model does not have."""
    return Rejection(grpc.StatusCode.INVALID_ARGUMENT, v1.ERROR_CODE_UNSUPPORTED_FEATURE, message)


def role_mismatch(message: str) -> Rejection:
    """A request for an engine of another role."""
    return Rejection(grpc.StatusCode.FAILED_PRECONDITION, v1.ERROR_CODE_ROLE_MISMATCH, message)


def model_not_found(field: str) -> Rejection:
    """`field` names a model that is not served."""
    message = f"{field} is not the name or an alias of a served model"
    return Rejection(grpc.StatusCode.NOT_FOUND, v1.ERROR_CODE_MODEL_NOT_FOUND, message)


DUPLICATE = Rejection(
    grpc.StatusCode.ALREADY_EXISTS,
    v1.ERROR_CODE_DUPLICATE_REQUEST,
    "request_id belongs to a request that is still active, expected an id not in use",
)
OVERLOADED = Rejection(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    v1.ERROR_CODE_OVERLOADED,
    "the queue is full, expected fewer requests at a time",
    retryable=True,
)
UNAVAILABLE = Rejection(
    grpc.StatusCode.UNAVAILABLE,
    v1.ERROR_CODE_OVERLOADED,
    "the engine takes no new requests: it is shutting down or its core has ended",
    retryable=True,
)
NO_BLOCKS = Rejection(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    v1.ERROR_CODE_OVERLOADED,
    "no block of the KV cache is free, expected fewer requests at a time",
    retryable=True,
)
PAUSED = Rejection(
    grpc.StatusCode.UNAVAILABLE,
    v1.ERROR_CODE_OVERLOADED,
    "generation is paused, expected to be asked again after it has been resumed",
    retryable=True,
)
UNKNOWN_REQUEST = Rejection(
    grpc.StatusCode.NOT_FOUND,
    v1.ERROR_CODE_REQUEST_NOT_FOUND,
    "request_id is not known, expected the id of an active or recently finished request",
)


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", rejection: Rejection) -> NoReturn:
    """End the call with the refusal."""
    await context.abort(rejection.status, rejection.message, rejection.trailers)
