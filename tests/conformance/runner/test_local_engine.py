from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.errors import UnreachableError
from conformance.runner.local_engine import LocalEngine

# Serves when the file in its first argument is there; what it would serve is written as an engine
# writes it.
SERVER = """
import json, pathlib, sys, threading
go, ready = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[sys.argv.index("--ready-file") + 1])
listen = sys.argv[sys.argv.index("--listen") + 1]
while not go.exists():
    threading.Event().wait(0.01)
address = "127.0.0.1:4321" if listen.endswith(":0") else listen
part = ready.with_suffix(".part")
part.write_text(json.dumps({"address": address}))
part.replace(ready)
threading.Event().wait()
"""


def test_it_is_started_before_it_is_waited_for(tmp_path: Path) -> None:
    """The caller goes on while it starts; it keeps its address over a restart."""
    go = tmp_path / "go"
    engine = LocalEngine([sys.executable, "-c", SERVER, str(go)], tmp_path, 30.0)
    try:
        assert engine.address == "127.0.0.1:0"
        go.touch()
        engine.wait_ready()
        assert engine.address == "127.0.0.1:4321"
        engine.restart()
        assert engine.address == "127.0.0.1:4321"
    finally:
        engine.stop()


def test_an_engine_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    """Its exit code and the last line of what it wrote."""
    engine = LocalEngine([sys.executable, "-c", "print('no room'); exit(3)"], tmp_path, 30.0)
    with pytest.raises(UnreachableError, match="code 3 and said: no room"):
        engine.wait_ready()


def test_an_engine_that_does_not_come_up_is_ended(tmp_path: Path) -> None:
    """The limit is kept, and nothing is left running."""
    command = [sys.executable, "-c", SERVER, str(tmp_path / "never")]
    engine = LocalEngine(command, tmp_path, 0.1)
    with pytest.raises(UnreachableError, match="did not come up"):
        engine.wait_ready()
    assert engine.hooks.restart is not None
    engine.stop()
