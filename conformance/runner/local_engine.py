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
from conformance.wire.hooks import Hooks

# Importing torch on a cold disk takes most of it; seen 2 to 25 s.
START_SECONDS = 120.0
STOP_SECONDS = 10.0
# A reader that does not read is given up after this: the engine's own 30 s are too long to watch
# in every run, and no reader of the suite is slower by accident.
STALL_MS = 3000
# A stuck engine is reported as one after this instead of 10 s: a step takes milliseconds here.
PROBE_MS = 500
_POLL_SECONDS = 0.01


class LocalEngine:
    """A reference engine that has been started. It keeps its address over a restart."""

    def __init__(self, command: Sequence[str], folder: Path, start_seconds: float) -> None:
        """Start it; `wait_ready` waits until it serves and has an address."""
        self._command = command
        self._ready = folder / "ready.json"
        self._log = folder / "engine.log"
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self.address = "127.0.0.1:0"
        self._begin()

    @property
    def hooks(self) -> Hooks:
        """Its own methods as hooks of a target."""
        return Hooks(restart=self.restart, stop=self.stop)

    def restart(self) -> None:
        """Stop it, if it runs, and start it. Raises UnreachableError when it does not come up."""
        self.stop()
        self._begin()
        self.wait_ready()

    def _begin(self) -> None:
        self._ready.unlink(missing_ok=True)
        listen = ("--listen", self.address, "--ready-file", str(self._ready))
        with self._log.open("wb") as output:
            # A session of its own: Ctrl-C at the terminal must reach the suite only, which ends
            # its calls before it ends the engine.
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*self._command, *listen],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A spinning OpenMP pool makes every step 20 to 100 times slower as soon as
                # anything else, such as the suite, uses the same cores.
                env={"GOMP_SPINCOUNT": "0", **os.environ},
            )

    def wait_ready(self) -> None:
        """Wait until it serves. Raises UnreachableError, and ends it, when it does not come up."""
        if self._process is None:
            return
        try:
            self.address = self._wait_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it gracefully, or at all, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> str:
        end = time.monotonic() + self._start_seconds
        while time.monotonic() < end:
            if self._ready.exists():
                return str(json.loads(self._ready.read_text(encoding="utf-8"))["address"])
            if process.poll() is not None:
                words = self._log.read_text(encoding="utf-8", errors="replace").strip()
                said = words.splitlines()[-1] if words else "nothing"
                raise UnreachableError(
                    f"the reference engine ended with code {process.returncode} and said: {said}"
                )
            time.sleep(_POLL_SECONDS)
        seconds = f"{self._start_seconds:.0f} s"
        raise UnreachableError(f"the reference engine did not come up within {seconds}")


@contextmanager
def starting_engine(
    model: str = "tiny", *, options: Sequence[str] = (), start_seconds: float = START_SECONDS
) -> Iterator[LocalEngine]:
    """A reference engine that serves `model`, for as long as the block runs. It serves `testing`
    too, so that requirements about faults can be observed. The block begins while it starts:
    importing torch takes seconds, in which the suite can do something else.

    Raises ConfigError when the engine's dependencies are not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "no --target is given and the reference engine is not installed",
            expected="--target host:port, or `pip install 'oe-conform[engine]'`",
        )
    command = [
        *(sys.executable, "-m", "reference_engine", "serve", "--model", model),
        *("--testing", "--stall-timeout-ms", str(STALL_MS)),
        *("--probe-timeout-ms", str(PROBE_MS), *options),
    ]
    with tempfile.TemporaryDirectory(prefix="oe-engine-") as folder:
        engine = LocalEngine(command, Path(folder), start_seconds)
        try:
            yield engine
        finally:
            engine.stop()


@contextmanager
def local_engine(
    model: str = "tiny", *, options: Sequence[str] = (), start_seconds: float = START_SECONDS
) -> Iterator[LocalEngine]:
    """As `starting_engine`; the block begins when it serves.

    Raises UnreachableError with the engine's own last words when it does not come up.
    """
    with starting_engine(model, options=options, start_seconds=start_seconds) as engine:
        engine.wait_ready()
        yield engine
