from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.fake_engine import FakeEngine


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A right engine on a port of its own."""
    with FakeEngine() as running:
        yield running
