"""`python -m tests.legacy_engine --behaviour trtllm --port 0`: serve until interrupted."""

from __future__ import annotations

import argparse
import signal
import threading

from tests.legacy_engine.behaviour import BEHAVIOURS
from tests.legacy_engine.server import LegacyEngine


def main() -> None:
    """Parse the options, print the address, serve."""
    parser = argparse.ArgumentParser(prog="tests.legacy_engine", description=__doc__)
    parser.add_argument("--behaviour", choices=sorted(BEHAVIOURS), default="clean")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with LegacyEngine(BEHAVIOURS[options.behaviour], options.port) as engine:
        print(engine.address, flush=True)  # noqa: T201 - the caller reads the port from here
        done.wait()


if __name__ == "__main__":
    main()
