"""Whether memory grows with the number of requests: `python bench/growth.py`, see bench/README.md.

Requests end in every way that there is: at their limit, by a stop, aborted, cancelled, refused.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.served import serve
from bench.traffic import ORDERLY, Client

MIB = 1024 * 1024
# Few blocks are all in use soon: untouched ones of a large cache become resident one by one.
KV_BLOCKS = "1024"


def main() -> int:
    """0 when all requests ended as they should; growth is printed, not judged."""
    parser = argparse.ArgumentParser(description="Memory over many requests.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--threads", type=int, default=1, help="threads of the model")
    options = parser.parse_args()
    part = max(1, options.requests // 10)
    with (
        serve(options.model, "--threads", str(options.threads), "--kv-blocks", KV_BLOCKS) as served,
        grpc.insecure_channel(served.address) as channel,
        ThreadPoolExecutor(32) as pool,
    ):
        client = Client(served, channel, ORDERLY)
        sizes = [served.memory()]
        print(f"{0:>8} requests: {sizes[0] / MIB:8.1f} MiB resident", flush=True)
        for first in range(0, options.requests, part):
            list(pool.map(client.request, range(first, first + part)))
            sizes.append(served.memory())
            print(f"{first + part:>8} requests: {sizes[-1] / MIB:8.1f} MiB resident", flush=True)
    half = sizes[len(sizes) // 2 :]
    per_request = (half[-1] - half[0]) / (part * (len(half) - 1))
    print(f"growth over the second half: {per_request:.0f} bytes a request")
    return 0


if __name__ == "__main__":
    sys.exit(main())
