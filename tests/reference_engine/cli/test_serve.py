from __future__ import annotations

import gc

import pytest

from reference_engine.cli.serve import _kept


def test_imports_are_kept_out_of_the_search_for_garbage() -> None:
    """It is off in the block, on after it, also after an error."""
    enabled = []

    def missing() -> None:
        with _kept():
            enabled.append(gc.isenabled())
            raise ImportError

    try:
        with pytest.raises(ImportError):
            missing()
        assert enabled == [False]
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
