"""`oe-engine worker` as a process: it serves, it says why it cannot, and it stops cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx

QUESTION = {"kind": "choice", "prompt": "Two and two make", "options": ["four", "red"]}


@contextmanager
def worker(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A worker process while the block runs; yields its origin."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "reference_engine", "worker", "--listen", "127.0.0.1:0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--ready-file", str(ready), *options], stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 120
        while not ready.exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield json.loads(ready.read_text())["address"], process
    finally:
        process.kill()
        process.wait()


def test_it_answers_drains_and_ends(tmp_path):
    """What is in flight at the stop signal still gets its answer, and the exit code is 0."""
    options = ("--testing", "--queue", "2", "--budget-header", "x-budget-ms")
    with worker(tmp_path, *options) as (origin, process):
        with httpx.Client(base_url=origin, timeout=60, trust_env=False) as client:
            assert client.get("/health").json() == {
                "status": "ok",
                "depth": 0,
                "capacity": 2,
                "rejected": 0,
            }
            answer = client.post("/v1/systemone", json=QUESTION)
            assert answer.status_code == 200
            assert answer.json()["answer"] in QUESTION["options"]
            assert answer.headers["x-queue-depth"] == "1"
            assert client.post("/v1/systemone", content=b"[]").status_code == 400
            client.post("/testing/worker", json={"work": "hold"})

            def held() -> int:
                brief = {"x-budget-ms": "1500"}
                return client.post("/v1/systemone", json=QUESTION, headers=brief).status_code

            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(held)
                while httpx.get(f"{origin}/testing/worker", timeout=60).json()["held"] == 0:
                    time.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                assert running.result(60) == 504
        assert process.wait(60) == 0
    assert not (tmp_path / "ready.json").exists()


def test_a_model_that_cannot_be_loaded_is_a_failed_worker(tmp_path):
    """The process runs on, refuses work, and its health route says why."""
    with worker(tmp_path, "--model", "/no/such/model") as (origin, process):
        with httpx.Client(base_url=origin, timeout=60, trust_env=False) as client:
            health = client.get("/health")
            assert (health.status_code, health.json()["status"]) == (503, "failed")
            assert "/no/such/model" in health.json()["reason"]
            refused = client.post("/v1/systemone", json=QUESTION)
            assert (refused.status_code, refused.json()["error"]) == (503, "model unavailable")
            # Nothing stages a worker that was not started for a test.
            assert client.get("/testing/worker").status_code == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
