"""Whether memory grows with the number of requests: `python bench/growth.py`, see bench/README.md.

Requests end in every way that there is: at their limit, by a stop, aborted, cancelled, refused.
"""

import argparse
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.served import Served, serve
from oe_wire import v1
from oe_wire.services import METHODS

MIB = 1024 * 1024
# Few blocks are all in use soon: untouched ones of a large cache become resident one by one.
KV_BLOCKS = "1024"
CALL_SECONDS = 60.0


class Client:
    """Makes the requests. Their order and kinds are the same in every run."""

    def __init__(self, served: Served, channel: grpc.Channel) -> None:
        self._model = served.model
        self._generate = _method(channel, "openengine.v1.Inference/Generate")
        self._abort = _method(channel, "openengine.v1.Control/Abort")

    def request(self, number: int) -> str:
        """Make one request; how it ended."""
        choice = random.Random(number)  # noqa: S311  # reproducible, not secret
        request = v1.GenerateRequest(request_id=f"r{number}", model=self._model)
        request.token_ids.ids.extend(choice.choices(range(300, 900), k=choice.randint(1, 64)))
        request.stopping.max_tokens = choice.randint(1, 12)
        request.sampling.num_sequences = choice.choice((1, 1, 1, 3))
        request.response.return_output_logprobs = choice.random() < 0.2
        way = choice.choice(("read", "read", "read", "abort", "cancel", "refused"))
        if way in ("abort", "cancel"):
            request.stopping.max_tokens = 200
            request.stopping.ignore_eos = True
        if way == "refused":
            request.sampling.top_p = 2.0
        call = self._generate(request, timeout=CALL_SECONDS)
        with suppress(grpc.RpcError):
            if way in ("abort", "cancel"):
                next(call)
            if way == "abort":
                self._abort(v1.AbortRequest(request_id=request.request_id), timeout=CALL_SECONDS)
            if way == "cancel":
                call.cancel()
            for _ in call:
                pass
        code = call.code().name
        expected = {"cancel": ("CANCELLED", "OK"), "refused": ("INVALID_ARGUMENT",)}
        if code not in expected.get(way, ("OK",)):
            raise RuntimeError(f"request {number} ({way}) ended with {code}: {call.details()}")
        return way


def _method(channel: grpc.Channel, name: str) -> Callable[..., Any]:
    method = METHODS[name]
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    return kind(method.path, method.request.SerializeToString, method.response.FromString)


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
        client = Client(served, channel)
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
