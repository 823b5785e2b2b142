"""Runs the handling of one request within its budget, and answers what keeps it from its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from reference_engine.worker.arrival import (
    BadBudgetError,
    BodyTooLargeError,
    UnreadableBodyError,
    deadline_of,
)
from reference_engine.worker.exchange import CallerGoneError, DroppedError
from reference_engine.worker.reply import error
from reference_engine.worker.settings import TransportSettings

log = logging.getLogger(__name__)

# Never sent: its reader has gone.
_NOBODY = 499


async def bounded(
    request: Request,
    settings: TransportSettings,
    handle: Callable[[Request, float], Awaitable[Response]],
    lost: Response,
) -> Response:
    """What `handle(request, deadline)` answers; 504 when the budget ends first. lost: the answer
    when the work behind it ended without a result.
    """
    now = asyncio.get_running_loop().time()
    try:
        return await handle(request, deadline_of(request, settings, now))
    except BadBudgetError:
        return error(400, f"{settings.budget_header}: expected whole milliseconds")
    except BodyTooLargeError:
        return error(413, f"the body is longer than {settings.body_limit} bytes")
    except UnreadableBodyError:
        return error(400, "the body could not be read")
    except TimeoutError:
        return error(504, "the time for this request is used up")
    except DroppedError as dropped:
        log.warning("a request was lost: %s", dropped)
        return lost
    except CallerGoneError:
        return Response(status_code=_NOBODY)
