"""`oe-engine` as a process and its errors."""

import json
import os
import signal
import subprocess
import sys
import time

import grpc
import pytest

from oe_wire import v1
from oe_wire.services import METHODS
from reference_engine.cli import main as entry

LIMIT = 60.0
COMMAND = [sys.executable, "-c", "from reference_engine.cli.main import main; main()"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "no-such-model"], "no-such-model"),
        (["--listen", "nonsense"], "--listen is 'nonsense', expected host:port"),
        (["--control-listen", "x"], "--control-listen is 'x', expected host:port"),
        (["--tls-cert", "a.pem"], "--tls-cert or --tls-key is missing"),
        (["--tls-cert", "/no/a", "--tls-key", "/no/b"], "--tls-cert /no/a: No such file"),
        (["--kv-blocks", "0"], "0 is not in the range"),
        (["--ready-file", "/no/such/directory/ready"], "--ready-file /no/such/directory/ready"),
    ],
)
def test_bad_options(monkeypatch, capsys, options, expected):
    """A bad option gives exit code 2 and a text that names it, without a traceback."""
    monkeypatch.setattr(sys, "argv", ["oe-engine", "serve", "--listen", "127.0.0.1:0", *options])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == 2
    output = capsys.readouterr().err
    assert expected in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output


def test_serve_until_sigterm(tmp_path):
    """The ready file says where the engine answers; SIGTERM ends it with code 0."""
    ready = tmp_path / "ready.json"
    process = subprocess.Popen(
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--ready-file", str(ready)],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + LIMIT
        while not ready.exists():
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        content = json.loads(ready.read_text())
        assert content["pid"] == process.pid
        method = METHODS["openengine.v1.Inference/Generate"]
        request = v1.GenerateRequest(request_id="r", model="tiny", prompt="def main(")
        request.stopping.max_tokens = 4
        with grpc.insecure_channel(content["address"]) as channel:
            call = channel.unary_stream(
                method.path, method.request.SerializeToString, method.response.FromString
            )
            *_, last = call(request, timeout=LIMIT)
        assert last.usage.completion_tokens >= 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert b"def main(" not in errors
    assert not ready.exists()
