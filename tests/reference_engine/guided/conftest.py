"""One engine with the tiny model for the tests of this directory."""

from collections.abc import Iterator

import pytest

from reference_engine.engine.config import EngineConfig
from reference_engine.model.load import load_model
from tests.reference_engine.server.running import Running, serving


@pytest.fixture(scope="session")
def engine() -> Iterator[Running]:
    config = EngineConfig(num_blocks=256, block_size=16, max_running=16, max_waiting=16)
    with serving(load_model("tiny"), config) as running:
        yield running
