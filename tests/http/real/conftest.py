from __future__ import annotations

from pathlib import Path

import pytest

from tools.scripted_model import write_scripted


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the scripted model: `hf/` and `scripted.gguf`."""
    folder = tmp_path_factory.mktemp("scripted")
    write_scripted(folder)
    return folder
