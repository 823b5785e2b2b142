"""Keeps the HTTP libraries' logs silent: at DEBUG they hold headers, at INFO the address."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# A filter holds for the very logger only, not for those below it.
_LOGGERS = ("httpx", "httpcore", "httpcore.connection", "httpcore.http11", "httpcore.proxy")


class _Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return False


@contextmanager
def quiet() -> Iterator[None]:
    """No log of these libraries while the block runs, whatever the application has set up."""
    nothing = _Nothing()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)
