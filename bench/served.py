"""`oe-engine serve` as a process, and a client that reads many streams at once."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from bench.workload import Workload
from oe_wire import v1
from oe_wire.services import METHODS

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 120.0
CALL_SECONDS = 300.0

_numbers = itertools.count()


@dataclass(slots=True)
class Served:
    """A serving process. `model` is the name it serves. stall_seconds: after which it gives up a
    stream that is not read.
    """

    model: str
    address: str
    pid: int
    stall_seconds: float = 30.0

    def memory(self) -> int:
        """Resident bytes now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"/proc/{self.pid}/status names no VmRSS")

    def seconds(self, workload: Workload) -> float:
        """Of wall time from the first call until the last stream has ended."""
        method = METHODS["openengine.v1.Inference/Generate"]
        requests = [
            self._request(prompt, output)
            for prompt, output in zip(workload.prompts, workload.outputs, strict=True)
        ]
        with grpc.insecure_channel(self.address) as channel:
            generate = channel.unary_stream(
                method.path, method.request.SerializeToString, method.response.FromString
            )
            start = time.perf_counter()
            calls = [generate(request, timeout=CALL_SECONDS) for request in requests]
            made = [_tokens(call) for call in calls]
            took = time.perf_counter() - start
        if made != list(workload.outputs):
            raise RuntimeError(f"{made} tokens came, expected {workload.outputs}")
        return took

    def _request(self, prompt: tuple[int, ...], output: int) -> v1.GenerateRequest:
        request = v1.GenerateRequest(request_id=f"bench-{next(_numbers)}", model=self.model)
        request.token_ids.ids.extend(prompt)
        request.sampling.temperature = 0
        request.stopping.max_tokens = output
        request.stopping.ignore_eos = True
        request.kv.bypass_prefix_cache = True
        return request


def _tokens(call: "grpc.CallIterator[v1.GenerateResponse]") -> int:
    return sum(len(message.token.tokens) for message in call)


@contextlib.contextmanager
def serve(model: str, *options: str) -> Iterator[Served]:
    """Serve on a free port while the block runs."""
    with tempfile.TemporaryDirectory() as directory:
        ready = Path(directory, "ready.json")
        command = [sys.executable, "-m", "reference_engine", "serve", "--model", model]
        command += ["--listen", "127.0.0.1:0", "--ready-file", str(ready), "--log-level", "error"]
        process = subprocess.Popen(  # noqa: S603  # our own command line
            [*command, *options], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"oe-engine serve did not start: code {process.returncode}")
                time.sleep(0.05)
            served = Served(model, json.loads(ready.read_text())["address"], process.pid)
            if "--stall-timeout-ms" in options:
                served.stall_seconds = int(options[options.index("--stall-timeout-ms") + 1]) / 1000
            yield served
        finally:
            process.terminate()
            process.wait()
