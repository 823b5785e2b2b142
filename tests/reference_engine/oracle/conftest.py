"""Comparisons with transformers, which the engine never imports: a developer installs it."""

import importlib.util
from pathlib import Path

import pytest

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what lies here without transformers; its own warnings are not our errors."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
            if not HAS_TRANSFORMERS:
                item.add_marker(pytest.mark.skip(reason="transformers is not installed"))
