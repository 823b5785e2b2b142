"""A request as it arrives: its budget, its body within the limit, and whether the caller stays."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from reference_engine.worker.settings import TransportSettings


class BodyTooLargeError(Exception):
    """The body has more bytes than the limit."""


class UnreadableBodyError(Exception):
    """The body broke off, or its framing is wrong."""


class BadBudgetError(Exception):
    """The budget header holds no number of milliseconds."""


def deadline_of(request: Request, settings: TransportSettings, now: float) -> float:
    """When the budget of a request ends whose headers have just arrived. A caller may ask for
    less than the operator grants, not for more. Raises BadBudgetError.
    """
    asked = request.headers.get(settings.budget_header) if settings.budget_header else None
    if asked is None:
        return now + settings.budget_seconds
    if not (asked.isascii() and asked.isdigit()):
        raise BadBudgetError
    # Nine digits are eleven days, and int() of very long ones is slow.
    return now + min(settings.budget_seconds, int(asked[:9]) / 1000)


async def read_body(request: Request, limit: int, deadline: float) -> bytes:
    """The whole body. Raises TimeoutError at the deadline, BodyTooLargeError as soon as it is
    known, and UnreadableBodyError.
    """
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise BodyTooLargeError
    body = bytearray()
    async with asyncio.timeout_at(deadline):
        while True:
            message = await request.receive()
            if message["type"] != "http.request":
                raise UnreadableBodyError
            body += message.get("body", b"")
            if len(body) > limit:
                raise BodyTooLargeError
            if not message.get("more_body", False):
                return bytes(body)


async def gone(request: Request) -> None:
    """Return when the caller has closed the connection. For after the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
