from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.fake_engine import Behaviour, FakeEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    """A right engine."""
    with FakeEngine() as running:
        yield running


@pytest.fixture(scope="module")
def wrong() -> Iterator[FakeEngine]:
    """An engine that serves any temperature."""
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}))) as running:
        yield running
