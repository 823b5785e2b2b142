"""Our own engine under abuse: `python bench/soak.py`, see bench/README.md.

Requests that end in every way, malformed, lost and stalled ones among them; then a look at what
is left over. The exit code is 1 when anything is: an id, a block, a request, a file, a thread.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.served import Served, serve
from bench.traffic import ABUSIVE, CALL_SECONDS, Client
from conformance.wire.connection import Connection
from conformance.wire.target import Target, parse_address
from oe_wire import health, v1
from oe_wire.services import METHODS

MIB = 1024 * 1024
KV_BLOCKS = "1024"
STALL_MS = "300"
# Within which everything that ended must be gone.
SETTLE_SECONDS = 10.0
_ADMIN = "openengine.v1.OpenEngineAdmin"


def main() -> int:
    """0 when nothing is left over, 1 otherwise."""
    options = _options()
    arguments = ("--threads", "1", "--kv-blocks", KV_BLOCKS, "--stall-timeout-ms", STALL_MS)
    with (
        serve(options.model, *arguments) as served,
        grpc.insecure_channel(served.address) as channel,
        ThreadPoolExecutor(options.clients) as pool,
    ):
        client = Client(served, channel, ABUSIVE)
        # The first requests pay for what is made once: threads, connections, pages of the cache.
        _all(pool, client, range(options.warm_up))
        before = _Resources.of(served)
        end = time.monotonic() + options.seconds
        ways: Counter[str] = Counter()
        number = options.warm_up
        last = number + options.requests
        while number < last and time.monotonic() < end:
            step = range(number, min(last, number + 10 * options.clients))
            ways += _all(pool, client, step)
            number = step.stop
        print(f"{number - options.warm_up} requests: {dict(sorted(ways.items()))}")
        left = list(_left(served, before, number - 1))
        after = _Resources.of(served)
    growth = (after.memory - before.memory) / max(1, number - options.warm_up)
    print(f"resident {before.memory / MIB:.1f} -> {after.memory / MIB:.1f} MiB", end=", ")
    print(f"{growth:.0f} bytes a request")
    print("\n".join(left) or "nothing is left over")
    return 1 if left else 0


class _Resources:
    """What the process holds now."""

    def __init__(self, memory: int, files: int, threads: int) -> None:
        self.memory, self.files, self.threads = memory, files, threads

    @classmethod
    def of(cls, served: Served) -> "_Resources":
        process = Path(f"/proc/{served.pid}")
        return cls(
            served.memory(),
            sum(1 for _ in (process / "fd").iterdir()),
            sum(1 for _ in (process / "task").iterdir()),
        )


def _all(pool: ThreadPoolExecutor, client: Client, numbers: range) -> Counter[str]:
    return Counter(pool.map(client.request, numbers))


def _left(served: Served, before: _Resources, last: int) -> Iterator[str]:
    """One line for each thing that should be gone and is not."""
    with Connection(Target(parse_address(served.address))) as connection:
        load = v1.LoadInfo()
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            load = _ask(connection, "openengine.v1.Control/GetLoad", v1.GetLoadRequest())
            if load.running_requests == load.queued_requests == 0:
                break
            time.sleep(0.1)
        if load.running_requests or load.queued_requests:
            yield f"{load.running_requests} running and {load.queued_requests} queued requests"
        state = _ask(connection, f"{_ADMIN}/GetAdminState", v1.GetAdminStateRequest())
        if state.in_flight_requests:
            yield f"{state.in_flight_requests} requests in flight"
        _ask(connection, f"{_ADMIN}/ResetCache", v1.ResetCacheRequest())
        load = _ask(connection, "openengine.v1.Control/GetLoad", v1.GetLoadRequest())
        if load.used_kv_blocks:
            yield f"{load.used_kv_blocks} blocks in use after the cache was emptied"
        yield from _ids(connection, served, last)
        check = health.HealthCheckRequest()
        answer = _ask(connection, "grpc.health.v1.Health/Check", check)
        if answer.status != health.HealthCheckResponse.SERVING:
            yield f"health says {answer.status}"
    now = _Resources.of(served)
    # gRPC keeps a few threads and sockets of connections that have just ended.
    while (now.files > before.files or now.threads > before.threads) and time.monotonic() < end:
        time.sleep(0.1)
        now = _Resources.of(served)
    if now.files > before.files:
        yield f"{now.files - before.files} more open files"
    if now.threads > before.threads:
        yield f"{now.threads - before.threads} more threads"


def _ids(connection: Connection, served: Served, last: int) -> Iterator[str]:
    """Ids of ended requests are free again."""
    for number in range(max(0, last - 50), last + 1):
        request = v1.GenerateRequest(request_id=f"r{number}", model=served.model, prompt="a")
        request.stopping.max_tokens = 1
        call = connection.call(
            METHODS["openengine.v1.Inference/Generate"], request, deadline=CALL_SECONDS
        )
        if not call.ending.ok:
            yield f"id r{number}: {call.ending.code.name}"


def _ask(connection: Connection, name: str, request: Message) -> Any:
    call = connection.call(METHODS[name], request, deadline=CALL_SECONDS)
    if not call.ending.ok:
        raise RuntimeError(f"{name}: {call.ending.code.name} {call.ending.details}")
    return call.messages[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A soak of the reference engine.")
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="end after this time")
    parser.add_argument("--warm-up", type=int, default=2_000, help="requests before the first look")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--model", default="tiny")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
