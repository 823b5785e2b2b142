from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli.smoke import fixture_environment
from conformance.http.origin import Origin
from conformance.mutants.http.fixture import fixture_profile
from conformance.records.smoke import smoke
from conformance.records.smoke_contract import smoke_contract
from conformance.records.store import FILE, CallStore

WORDS = fixture_environment("http://127.0.0.1:9", "chat")
# The process ends at the moment at which a byte might go out: nothing of it is cleaned up.
SCRIPT = """
import os, sys
from pathlib import Path
from conformance.cli.smoke import fixture_environment
from conformance.mutants.http.fixture import fixture_profile
from conformance.records.smoke import smoke
from conformance.records.smoke_contract import smoke_contract
words = fixture_environment("http://127.0.0.1:9", "chat")
contract = smoke_contract(words, lambda _: fixture_profile())
smoke(contract, words, Path(sys.argv[1]), dialer=lambda *_: os._exit(9))
"""


def _kinds(directory: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (directory / FILE).read_text().splitlines()]


def test_a_process_that_dies_while_it_sends(tmp_path: Path) -> None:
    """The lease is on the disk, and the next process makes the call sent_unknown."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False, timeout=120)
    assert ended.returncode == 9
    assert _kinds(tmp_path) == ["intent", "lease"]
    with CallStore(tmp_path) as store:
        (lost,) = store.recovered
        assert lost.dispatch == "sent_unknown"
        assert not store.may_send(lost.intent.call_id)
    assert _kinds(tmp_path) == ["intent", "lease", "outcome"]


def test_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a call is an outcome, too, and is not swallowed."""

    def dial(origin: Origin, seconds: float) -> socket.socket:
        raise KeyboardInterrupt

    contract = smoke_contract(WORDS, lambda _: fixture_profile())
    with pytest.raises(KeyboardInterrupt):
        smoke(contract, WORDS, tmp_path, dialer=dial)
    last = json.loads((tmp_path / FILE).read_text().splitlines()[-1])
    assert last["record"]["dispatch"] == "sent_unknown"
    with CallStore(tmp_path) as store:
        assert store.recovered == ()
