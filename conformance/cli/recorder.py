"""Writes the calls of a run into a directory that `oe-conform judge` reads.

calls.jsonl     one call on a line, as docs/reference/transcripts.md describes it
target.json     what the engine declared
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import ConfigError
from conformance.runner.events import RunEvent, RunStarted
from conformance.wire.declared import Declared
from conformance.wire.declared_json import to_text
from conformance.wire.payload import without_payload
from conformance.wire.transcript import Transcript
from conformance.wire.transcript_json import to_line

CALLS, TARGET = "calls.jsonl", "target.json"


class Recorder:
    """Takes finished calls from any thread. Without a directory it does nothing.

    payloads: whether prompts, tokens, outputs and metadata are kept; they may be credentials.
    """

    def __init__(self, directory: Path | None, *, payloads: bool) -> None:
        self._directory = directory
        self._payloads = payloads
        self._lock = threading.Lock()
        self._write: Callable[[str], object] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Calls are written while the block runs. Raises ConfigError when they cannot be."""
        if self._directory is None:
            yield
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            file = (self._directory / CALLS).open("w", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--record: {error}") from error
        with file:
            self._write = file.write
            yield

    def call(self, transcript: Transcript) -> None:
        """Write one call."""
        if self._write is None:
            return
        kept = transcript if self._payloads else without_payload(transcript)
        line = to_line(kept) + "\n"
        with self._lock:
            self._write(line)

    def event(self, event: RunEvent) -> None:
        """Write what the target declared, when the run has learnt it."""
        if self._directory is None or not isinstance(event, RunStarted):
            return
        if not isinstance(event.declared, Declared):
            return
        text = to_text(event.declared)
        try:
            (self._directory / TARGET).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--record: {error}") from error
