"""Sizes of an engine."""

import pytest

from reference_engine.engine.config import DEFAULT_CACHE_BYTES, EngineConfig, default_num_blocks
from reference_engine.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_blocks", 0),
        ("block_size", 0),
        ("max_running", 0),
        ("max_num_sequences", 0),
        ("max_waiting", -1),
        ("max_batched_tokens", 63),
    ],
)
def test_senseless_sizes(name, value):
    """A size that makes no sense is refused by name and value."""
    with pytest.raises(ConfigError, match=f"{name} is {value}, expected at least"):
        EngineConfig(**{"num_blocks": 1, name: value})


@pytest.mark.parametrize("token_bytes", [100, 50_000, 10_000_000])
def test_default_blocks(token_bytes):
    """The cache holds a window, at most max_running windows, and keeps its budget if it can."""
    blocks = default_num_blocks(token_bytes, block_size=16, window=1000, max_running=4)
    assert 63 <= blocks <= 63 * 4
    assert blocks == 63 or blocks * 16 * token_bytes <= DEFAULT_CACHE_BYTES
