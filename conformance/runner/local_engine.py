"""Starts the reference engine as a process of its own, for runs that name no target."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import ConfigError, UnreachableError

# Importing torch on a cold disk takes most of it; seen 2 to 25 s.
START_SECONDS = 120.0
STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05


@contextmanager
def local_engine(
    model: str = "tiny", *, options: Sequence[str] = (), start_seconds: float = START_SECONDS
) -> Iterator[str]:
    """The address of a reference engine that serves `model`, for as long as the block runs.

    Raises ConfigError when the engine's dependencies are not installed, and UnreachableError with
    the engine's own last words when it does not come up.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "no --target is given and the reference engine is not installed",
            expected="--target host:port, or `pip install 'oe-conform[engine]'`",
        )
    with tempfile.TemporaryDirectory(prefix="oe-engine-") as folder:
        ready, log = Path(folder) / "ready.json", Path(folder) / "engine.log"
        command = [
            *(sys.executable, "-m", "reference_engine", "serve", "--model", model),
            *("--listen", "127.0.0.1:0", "--ready-file", str(ready), *options),
        ]
        with log.open("wb") as output:
            # A session of its own: Ctrl-C at the terminal must reach the suite only, which ends
            # its calls before it ends the engine.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A spinning OpenMP pool makes every step 20 to 100 times slower as soon as
                # anything else, such as the suite, uses the same cores.
                env={"GOMP_SPINCOUNT": "0", **os.environ},
            )
        try:
            yield _address(process, ready, log, start_seconds)
        finally:
            _end(process)


def _address(process: subprocess.Popen[bytes], ready: Path, log: Path, start_seconds: float) -> str:
    end = time.monotonic() + start_seconds
    while time.monotonic() < end:
        if ready.exists():
            return str(json.loads(ready.read_text(encoding="utf-8"))["address"])
        if process.poll() is not None:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            said = words[-1] if words else "nothing"
            raise UnreachableError(
                f"the reference engine ended with code {process.returncode} and said: {said}"
            )
        time.sleep(_POLL_SECONDS)
    raise UnreachableError(f"the reference engine did not come up within {start_seconds:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
