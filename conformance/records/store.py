"""A write-ahead store of calls: intent, lease, outcome. What may have been sent is not sent again.

A lease is on the disk before the first byte is on the wire, so a lease without an outcome is a call
whose fate nobody knows: opening the store makes it sent_unknown.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from conformance.errors import ConfigError, HarnessError
from conformance.http.json_text import parse_json
from conformance.records.category import Category
from conformance.records.record import (
    CallRecord,
    Completion,
    Dispatch,
    Intent,
    checked,
    intent_from,
    intent_json,
    problem_of,
    record_json,
)

FILE = "calls.jsonl"
_LONGEST_LINE = 16 * 1024


@dataclass(slots=True)
class _Call:
    """What the store knows of one call. leased: number of the last attempt, 0 = none; outcome:
    dispatch state of the attempt that is over, None while there is none.
    """

    intent: Intent
    leased: int = 0
    outcome: Dispatch | None = None


class CallStore:
    """The calls in one directory, for one process at a time."""

    def __init__(self, directory: Path) -> None:
        """Open or create the store. Raises ConfigError when it is in use, or is none."""
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / FILE
        self._calls: dict[str, _Call] = {}
        self._file = _locked(self.path)
        try:
            _sync_directory(directory)
            self._load()
            self.recovered = self._recover()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back."""
        self._file.close()

    def intend(self, intent: Intent) -> None:
        """Note a call that is meant to be made. Raises ConfigError for a known id."""
        if intent.call_id in self._calls:
            raise ConfigError("a call with this id is in the store", expected="a new id")
        self._append({"kind": "intent", "intent": intent_json(intent)})
        self._calls[intent.call_id] = _Call(intent)

    def may_send(self, call_id: str) -> bool:
        """Whether the call may go out: it never did, for certain, and an attempt is left."""
        call = self._call(call_id)
        unsent = call.leased == 0 or call.outcome is Dispatch.NOT_SENT
        return unsent and call.leased < call.intent.attempts

    def lease(self, call_id: str, *, request_bytes: int, response_limit: int) -> int:
        """Take the right to send the call once; on the disk when this returns. Gives the number
        of the attempt. Raises HarnessError when the call may not be sent.
        """
        if not self.may_send(call_id):
            raise HarnessError("a call may not be sent again")
        call = self._call(call_id)
        attempt = call.leased + 1
        line = {"kind": "lease", "call_id": call_id, "attempt": attempt}
        self._append(line | {"request_bytes": request_bytes, "response_limit": response_limit})
        call.leased, call.outcome = attempt, None
        return attempt

    def complete(self, record: CallRecord) -> None:
        """Note how an attempt ended. Raises HarnessError unless it is leased and not over yet."""
        call = self._call(record.intent.call_id)
        if record.intent != call.intent or record.attempt != call.leased or call.outcome:
            raise HarnessError("an outcome without the lease that it belongs to")
        self._append({"kind": "outcome", "record": record_json(record)})
        call.outcome = record.dispatch

    def _call(self, call_id: str) -> _Call:
        if call_id not in self._calls:
            raise HarnessError("a call that was never intended")
        return self._calls[call_id]

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(checked("line", line), sort_keys=True)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _recover(self) -> tuple[CallRecord, ...]:
        """Give every lease without an outcome the only honest one."""
        lost = [call for call in self._calls.values() if call.leased and call.outcome is None]
        records = tuple(
            CallRecord(
                call.intent,
                call.leased,
                Dispatch.SENT_UNKNOWN,
                Completion.FAILED,
                error=Category.INTERRUPTED,
            )
            for call in lost
        )
        for record in records:
            self.complete(record)
        return records

    def _load(self) -> None:
        self._file.seek(0)
        number, end = 0, 0
        for number, raw in enumerate(self._file, 1):
            if not raw.endswith(b"\n"):
                # Torn by a crash while it was written, so nothing was done on the strength of it.
                self._file.truncate(end)
                break
            self._apply(_parsed(raw, number, self.path), number)
            end += len(raw)
        self._file.seek(0, os.SEEK_END)

    def _apply(self, line: dict[str, Any], number: int) -> None:
        if line["kind"] == "intent":
            intent = intent_from(line["intent"])
            if intent.call_id in self._calls:
                raise _damaged(self.path, number, "an id that is there already")
            self._calls[intent.call_id] = _Call(intent)
            return
        holder = line if line["kind"] == "lease" else line["record"]
        call = self._calls.get(holder["call_id"])
        if call is None:
            raise _damaged(self.path, number, "no intent before it")
        if line["kind"] == "lease":
            if holder["attempt"] != call.leased + 1 or not self.may_send(holder["call_id"]):
                raise _damaged(self.path, number, "a lease that could not be had")
            call.leased, call.outcome = holder["attempt"], None
        else:
            if holder["attempt"] != call.leased or call.outcome is not None:
                raise _damaged(self.path, number, "no lease before it")
            call.outcome = Dispatch(holder["dispatch"])


def _parsed(raw: bytes, number: int, path: Path) -> dict[str, Any]:
    value: Any = parse_json(raw) if len(raw) <= _LONGEST_LINE else None
    problem = problem_of("line", value)
    if problem:
        raise _damaged(path, number, f"no line of a store at {problem}")
    line: dict[str, Any] = value
    return line


def _damaged(path: Path, number: int, problem: str) -> ConfigError:
    return ConfigError(
        f"{problem}; nothing is sent on the strength of a damaged store",
        source=path.name,
        where=f"line {number}",
    )


def _locked(path: Path) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    file = os.fdopen(descriptor, "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise ConfigError(
            "the store is in use", source=path.name, expected="one process at a time"
        ) from error
    return file


def _sync_directory(directory: Path) -> None:
    """A new file is there after a crash only when its directory is synced, too."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
