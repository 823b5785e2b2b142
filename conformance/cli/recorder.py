"""Writes the calls of a run to a file, one JSON line each, as `oe-conform judge` reads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import ConfigError
from conformance.wire.transcript import Transcript
from conformance.wire.transcript_json import to_line


@contextmanager
def recorder(path: Path | None) -> Iterator[Callable[[Transcript], None]]:
    """A function that appends a call to the file at `path`; without a path it does nothing.

    Raises ConfigError when the file cannot be written.
    """
    if path is None:
        yield lambda _: None
        return
    lock = threading.Lock()
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--record: {error}") from error
    with file:

        def write(transcript: Transcript) -> None:
            line = to_line(transcript)
            with lock:
                file.write(line + "\n")

        yield write
