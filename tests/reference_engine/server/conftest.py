"""One engine with a small random model for the tests of this directory."""

from collections.abc import Iterator

import pytest

from reference_engine.engine.config import EngineConfig
from tests.reference_engine.server.running import WINDOW, Running, fake_model, serving

CONFIG = EngineConfig(num_blocks=2 * WINDOW // 16, block_size=16, max_running=16, max_waiting=16)


@pytest.fixture(scope="session")
def engine() -> Iterator[Running]:
    with serving(fake_model(), CONFIG) as running:
        yield running
