"""Cache resets of a real server."""

import grpc
import pytest

from oe_wire import v1
from tests.reference_engine.server.admin.calls import (
    cached,
    pause,
    reset,
    resume,
)
from tests.reference_engine.server.running import (
    fresh_id,
    long_request,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_reset_cache(engine):
    """It lists what it reset; idle, paused or with requests running, the next prompt has 0."""
    running = engine.start_generate(long_request())
    next(running)
    for paused in (False, True):
        prompt = fresh_id() * 6
        assert (cached(engine, prompt), cached(engine, prompt) > 0) == (0, True)
        if paused:
            pause(engine)
        outcome = reset(engine, *([v1.CACHE_KIND_PREFIX] * 2 if paused else []))
        assert list(outcome.message.reset) == [v1.CACHE_KIND_PREFIX]
        resume(engine)
        assert cached(engine, prompt) == 0
    next(running)
    running.cancel()


def test_pause_with_reset(engine):
    """reset_prefix_cache empties the cache, also when the engine is paused already."""
    prompt = fresh_id() * 6
    for before in (False, True):
        cached(engine, prompt)
        assert cached(engine, prompt) > 0
        if before:
            pause(engine)
        pause(engine, reset_prefix_cache=True)
        resume(engine)
        assert cached(engine, prompt) == 0


@pytest.mark.parametrize(
    "kind", [0, v1.CACHE_KIND_MULTIMODAL, v1.CACHE_KIND_ENCODER, v1.CACHE_KIND_CONNECTOR, 77]
)
def test_caches_that_are_not_there(reject, kind):
    """An unlisted kind is INVALID_ARGUMENT, beside a listed one too, and nothing is reset."""
    prompt = fresh_id() * 6
    cached(reject, prompt)
    assert reset(reject, v1.CACHE_KIND_PREFIX, kind).code is INVALID
    assert cached(reject, prompt) > 0
