from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.errors import ConfigError, HarnessError
from conformance.records.category import Category
from conformance.records.record import Completion, Dispatch
from conformance.records.store import FILE, CallStore
from tests.http.records.samples import complete, intent


def _lease(store: CallStore, number: int = 1) -> int:
    return store.lease(intent(number).call_id, request_bytes=10, response_limit=100)


def _lines(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / FILE).read_text().splitlines()]


def test_one_call(tmp_path: Path) -> None:
    """Intent, lease and outcome stand in the file in this order."""
    with CallStore(tmp_path) as store:
        store.intend(intent())
        assert _lease(store) == 1
        store.complete(complete(intent()))
    assert [line["kind"] for line in _lines(tmp_path)] == ["intent", "lease", "outcome"]


def test_the_lease_is_on_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When `lease` returns, the file was synced after its line was written."""
    synced: list[str] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append((tmp_path / FILE).read_text())

    with CallStore(tmp_path) as store:
        store.intend(intent())
        monkeypatch.setattr(os, "fsync", noted)
        _lease(store)
    assert json.loads(synced[-1].splitlines()[-1])["kind"] == "lease"


def test_a_lease_without_outcome_is_never_sent_again(tmp_path: Path) -> None:
    """After a crash between lease and outcome the call is sent_unknown, for good."""
    with CallStore(tmp_path) as store:
        store.intend(intent(attempts=3))
        _lease(store)
    for recovered in (1, 0):
        with CallStore(tmp_path) as store:
            assert len(store.recovered) == recovered
            assert not store.may_send(intent().call_id)
            with pytest.raises(HarnessError, match="again"):
                _lease(store)
    record = _lines(tmp_path)[-1]["record"]
    assert isinstance(record, dict)
    assert (record["dispatch"], record["error"]) == (
        "sent_unknown",
        {"category": "interrupted", "status": None},
    )


def test_an_intent_alone_may_be_sent(tmp_path: Path) -> None:
    """After a crash before the lease nothing has happened."""
    with CallStore(tmp_path) as store:
        store.intend(intent())
    with CallStore(tmp_path) as store:
        assert store.may_send(intent().call_id)


def test_only_what_was_not_sent_is_tried_again(tmp_path: Path) -> None:
    """A proven not_sent uses the next attempt, as long as there is one; nothing else does."""
    unsent = replace(
        complete(intent(attempts=2)),
        dispatch=Dispatch.NOT_SENT,
        completion=Completion.FAILED,
        error=Category.CONNECT,
        response=None,
    )
    with CallStore(tmp_path) as store:
        store.intend(intent(attempts=2))
        _lease(store)
        store.complete(unsent)
        assert _lease(store) == 2
        store.complete(replace(unsent, attempt=2))
        assert not store.may_send(intent().call_id)
    with CallStore(tmp_path) as store:
        assert not store.may_send(intent().call_id)


def test_misuse(tmp_path: Path) -> None:
    """Two leases at once, an outcome without one, two outcomes, two intents: all refused."""
    with CallStore(tmp_path) as store:
        with pytest.raises(HarnessError, match="intended"):
            _lease(store)
        store.intend(intent(attempts=2))
        with pytest.raises(ConfigError, match="new id"):
            store.intend(intent())
        with pytest.raises(HarnessError, match="lease"):
            store.complete(complete(intent(attempts=2)))
        _lease(store)
        with pytest.raises(HarnessError, match="again"):
            _lease(store)
        store.complete(complete(intent(attempts=2)))
        with pytest.raises(HarnessError, match="lease"):
            store.complete(complete(intent(attempts=2)))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A store that is open elsewhere is not opened."""
    with CallStore(tmp_path), pytest.raises(ConfigError, match="in use"):
        CallStore(tmp_path)
    CallStore(tmp_path).close()


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"{}\n",
        b"null\n",
        b'{"kind": "lease"}\n',
        b"\xff\xfe\n",
        b"[" * 5000 + b"\n",
        b'{"kind": "lease", "call_id": "%032d", "attempt": 1, "request_bytes": 1,'
        b' "response_limit": 1}\n' % 7,
    ],
)
def test_a_damaged_store_is_not_used(tmp_path: Path, line: bytes) -> None:
    """A whole line that does not belong there stops everything, and is not quoted."""
    with CallStore(tmp_path) as store:
        store.intend(intent())
    with (tmp_path / FILE).open("ab") as file:
        file.write(line)
    with pytest.raises(ConfigError, match="line 2") as refused:
        CallStore(tmp_path)
    assert "garbage" not in str(refused.value)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = tmp_path_factory.mktemp("history")
    with CallStore(directory) as store:
        for number in (1, 2):
            store.intend(intent(number))
            _lease(store, number)
            store.complete(complete(intent(number)))
    return (directory / FILE).read_bytes()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.floats(0, 1))
def test_a_crash_at_any_byte(history: bytes, tmp_path: Path, cut: float) -> None:
    """Wherever a crash tears the file, a call with a whole lease is not sent again, and one
    without is.
    """
    kept = history[: round(cut * len(history))]
    (tmp_path / FILE).write_bytes(kept)
    whole = [json.loads(line) for line in kept.splitlines(keepends=True) if line.endswith(b"\n")]
    with CallStore(tmp_path) as store:
        intended = {line["intent"]["call_id"] for line in whole if line["kind"] == "intent"}
        leased = {line["call_id"] for line in whole if line["kind"] == "lease"}
        for call_id in intended:
            assert store.may_send(call_id) == (call_id not in leased)
