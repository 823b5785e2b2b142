"""`oe-engine serve --data-parallel-size` as a process."""

import json
import os
import signal
import subprocess
import sys

import grpc

from oe_wire import v1
from tests.reference_engine.server.running import Client, eventually

# Three processes import torch, one after the other and then two at once.
START_SECONDS = 120.0
COMMAND = [sys.executable, "-c", "from reference_engine.cli.main import main; main()"]


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
        return list(map(int, file.read().split()))


def test_serve_with_two_ranks(tmp_path):
    """Both ranks answer; SIGTERM lets running work end, refuses new work, and ends everything."""
    ready = tmp_path / "ready.json"
    options = ["--listen", "127.0.0.1:0", "--ready-file", str(ready), "--data-parallel-size", "2"]
    process = subprocess.Popen(
        [*COMMAND, "serve", *options, "--stall-timeout-ms", "1234", "--grace", "0.2"],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert eventually(lambda: ready.exists() or process.poll() is not None, START_SECONDS)
        assert process.poll() is None, process.stderr.read()
        ranks = children(process.pid)
        client = Client(json.loads(ready.read_text())["address"])
        capabilities = client.call(
            "openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()
        ).message
        assert capabilities.core.response_stall_timeout_ms == 1234
        texts = set()
        for rank in ("0", "1"):
            request = v1.GenerateRequest(request_id=rank, model="tiny", prompt="def main(")
            request.sampling.seed = 3
            request.stopping.max_tokens = 8
            outcome = client.generate(request, metadata=[("openengine-target-dp-rank", rank)])
            texts.add(outcome.text())
            assert outcome.code is grpc.StatusCode.OK
        assert len(texts) == 1
        request.stopping.ClearField("max_tokens")
        request.stopping.ignore_eos = True
        running = client.start_generate(request)
        next(running)
        process.send_signal(signal.SIGTERM)
        *_, last = running
        assert last.finished.reason in {v1.FINISH_REASON_CANCELLED, v1.FINISH_REASON_LENGTH}
        _, errors = process.communicate(timeout=60)
        client.channel.close()
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in errors, errors.decode()
    assert ranks
    # The helper process of multiprocessing ends a moment after its owner.
    assert eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in ranks))  # noqa: PTH110
