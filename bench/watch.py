"""What many watchers of the load cost generation: `python bench/watch.py`, see bench/README.md.

One engine with one thread for its products, measured in turns without and with watchers, which
live in a process of their own.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Idle threads that spin take the core from those that work; has to be set before torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.served import Served, serve
from bench.workload import Workload, uniform
from oe_wire import v1
from oe_wire.services import METHODS

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY = 1024
CHANNELS = 8
# The server is at rest when it has used this little CPU in half a second.
QUIET_SECONDS = 0.03
SETTLE_SECONDS = 20.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Turn:
    """One round: seconds of wall time, CPU seconds of the serving process, messages to watchers."""

    wall: float
    cpu: float
    messages: int = 0


def main() -> int:
    """0; figures are printed, never judged."""
    options = _options()
    if options.watch is not None:
        asyncio.run(_watch(options.watch, options.watchers))
        return 0
    work = uniform(options.batch, options.prompt, options.output, VOCABULARY)
    limit = str(max(64, options.watchers))
    with serve(options.model, "--threads", "1", "--max-watch-streams", limit) as served:
        _turn(served, work)
        alone: list[Turn] = []
        watched: list[Turn] = []
        for _ in range(options.turns):
            _settle(served)
            alone.append(_turn(served, work))
            with _watchers(served, options.watchers) as child:
                _settle(served)
                before = _received(child)
                turn = _turn(served, work)
                watched.append(replace(turn, messages=_received(child) - before))
    _print(alone, watched, work, options)
    return 0


def _settle(served: Served) -> None:
    """Wait until the server has nothing else to do, such as to open or end streams."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = _cpu(served.pid)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        used, before = _cpu(served.pid) - before, _cpu(served.pid)
        if used <= QUIET_SECONDS:
            break


def _turn(served: Served, work: Workload) -> Turn:
    before = _cpu(served.pid)
    wall = served.seconds(work)
    return Turn(wall, _cpu(served.pid) - before)


def _cpu(pid: int) -> float:
    """Seconds that a process has computed, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def _watchers(served: Served, count: int) -> Iterator["subprocess.Popen[str]"]:
    """A process that watches until the block ends, and tells what it has received when asked."""
    command = [sys.executable, __file__, "--watch", served.address, "--watchers", str(count)]
    child = subprocess.Popen(  # noqa: S603  # our own command line
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        if child.stdout is None or child.stdout.readline().strip() != "ready":
            raise RuntimeError("the watchers did not start")
        yield child
    finally:
        if child.stdin is not None:
            child.stdin.close()
        child.wait()


def _received(child: "subprocess.Popen[str]") -> int:
    """Messages that the watchers have had until now."""
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the watchers cannot be asked")
    child.stdin.write("\n")
    return int(child.stdout.readline())


async def _watch(address: str, count: int) -> None:
    """The watchers' process: read `count` streams until standard input ends."""
    received = 0
    all_open = asyncio.Event()
    method = METHODS["openengine.v1.OpenEngineObservability/WatchLoad"]
    channels = [
        grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(CHANNELS)
    ]

    async def read(call: Any) -> None:
        nonlocal received
        async for _ in call:
            received += 1
            if received == 2 * count:
                all_open.set()

    calls = []
    for number in range(count):
        # The answer is not looked into: its reading is no part of what the engine does.
        channel = channels[number % CHANNELS]
        start = channel.unary_stream(method.path, method.request.SerializeToString, None)
        calls.append(start(v1.WatchLoadRequest()))
    readers = [asyncio.create_task(read(call)) for call in calls]
    await all_open.wait()
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(received, flush=True)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    for channel in channels:
        await channel.close(None)


def _print(
    alone: list[Turn], watched: list[Turn], work: Workload, options: argparse.Namespace
) -> None:
    best = [min(turn.wall for turn in turns) for turns in (alone, watched)]
    pairs = [one.wall / other.wall for one, other in zip(alone, watched, strict=True)]
    middle = [statistics.median(turn.wall for turn in turns) for turns in (alone, watched)]
    cpu = [statistics.median(turn.cpu for turn in turns) for turns in (alone, watched)]
    took = sum(turn.wall for turn in watched)
    messages = sum(turn.messages for turn in watched)
    extra = sum(turn.cpu for turn in watched) - sum(turn.cpu for turn in alone)
    rate = work.num_outputs / best[0]
    print(f"{options.model}, {work.name}: {rate:.0f} tokens/s without watchers (best turn)")
    print(f"{options.watchers} watchers, {messages / took:.0f} messages/s during the work:")
    print(f"  rate of the best turns: {best[0] / best[1]:.3f} of that")
    print(f"  median turns: {middle[0] / middle[1]:.3f}, median of {len(pairs)} pairs: ", end="")
    print(f"{statistics.median(pairs):.3f}")
    print(f"  CPU time of the engine for the same work: x {cpu[1] / cpu[0]:.3f}")
    print(f"  what it spends on them: {100 * extra / took:.1f} % of a core, ", end="")
    print(f"{1e6 * extra / max(messages, 1):.0f} us a message")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--output", type=int, default=200)
    parser.add_argument("--watch", metavar="ADDRESS", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
