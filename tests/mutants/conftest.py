"""The engine that stands behind every mutant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.runner.local_engine import local_engine
from conformance.wire.target import Target, parse_address


@pytest.fixture(scope="session")
def engine() -> Iterator[Target]:
    """One engine for all mutants."""
    with local_engine("tiny") as running:
        yield Target(parse_address(running.address), hooks=running.hooks)
