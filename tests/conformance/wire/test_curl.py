from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.wire.curl import curl_line, octal
from conformance.wire.target import Target
from conformance.wire.tls import load_tls
from oe_wire import v1
from tests.conformance.wire.servers import Serve

LONG = 20.0
INFO = "openengine.v1.Control/GetServerInfo"
GENERATE = "openengine.v1.Inference/Generate"


def _curl_has_http2() -> bool:
    if shutil.which("curl") is None:
        return False
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True)
    return "HTTP2" in version.stdout


needs_curl = pytest.mark.skipif(not _curl_has_http2(), reason="no curl with HTTP/2 here")


def run(line: str, **environment: str) -> str:
    """Output of the line in the system's sh."""
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# No deadline: starting a process takes as long as the machine is busy.
@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=300))
def test_octal_is_exact_in_sh(data: bytes) -> None:
    """Any bytes, percent signs, quotes and zeros included, come out of printf as they are."""
    done = subprocess.run(
        ["sh", "-c", f"printf '{octal(data)}'"], capture_output=True, timeout=LONG, check=True
    )
    assert done.stdout == data


class Recorder:
    """GetServerInfo and Generate that keep what they were sent."""

    def __init__(self) -> None:
        self.request: Any = None
        self.metadata: list[tuple[str, str | bytes]] = []

    def info(self, request: Any, context: grpc.ServicerContext) -> v1.ServerInfo:
        self.metadata = [(str(key), value) for key, value in context.invocation_metadata()]
        return v1.ServerInfo(engine_name="e")

    def generate(self, request: v1.GenerateRequest, context: grpc.ServicerContext) -> Any:
        self.request = request
        context.set_trailing_metadata((("openengine-error-code", "INVALID_ARGUMENT"),))
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "top_p out of range")

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return {"Control": {"GetServerInfo": self.info}, "Inference": {"Generate": self.generate}}


@needs_curl
def test_request_arrives_and_status_is_printed(serve: Serve) -> None:
    """The engine gets the same request and the line prints status, text and trailers."""
    engine = Recorder()
    request = v1.GenerateRequest(request_id="50% of 'it' \\ \"$HOME\" `id`", prompt="é\n\x00%s")
    line = curl_line(Target(serve(engine.services)), GENERATE, request.SerializeToString())
    printed = run(line)
    assert engine.request == request
    assert "grpc-status: 3" in printed
    assert "grpc-message: top_p out of range" in printed
    assert "openengine-error-code: INVALID_ARGUMENT" in printed
    assert "\n" not in line


@needs_curl
def test_success_and_metadata(serve: Serve) -> None:
    """A call that goes well prints status 0; its metadata arrives, text and binary."""
    engine = Recorder()
    metadata = (("k", "it's"), ("k", "two words"), ("b-bin", b"\x00\xff"))
    printed = run(curl_line(Target(serve(engine.services)), INFO, b"", metadata))
    assert "grpc-status: 0" in printed
    assert [pair for pair in engine.metadata if pair[0] in {"k", "b-bin"}] == list(metadata)


@needs_curl
def test_credentials_are_shell_variables(serve: Serve) -> None:
    """The line holds no credential and works once the variable is set."""
    engine = Recorder()
    target = Target(
        serve(engine.services),
        metadata=(("authorization", "Bearer s3cret"), ("x-api.key", "s3cret")),
        secrets={"authorization": "ENGINE_TOKEN"},
    )
    line = curl_line(target, INFO, b"")
    assert "s3cret" not in line
    printed = run(line, ENGINE_TOKEN="Bearer s3cret", X_API_KEY="s3cret")
    assert "grpc-status: 0" in printed
    assert {("authorization", "Bearer s3cret"), ("x-api.key", "s3cret")} <= set(engine.metadata)


@needs_curl
def test_unix_socket(serve: Serve, tmp_path: Path) -> None:
    """A Unix socket is reached with curl's own option."""
    engine = Recorder()
    address = serve(engine.services, listen=f"unix:{tmp_path}/engine.sock")
    assert "grpc-status: 0" in run(curl_line(Target(address), INFO, b""))


@needs_curl
def test_tls_with_another_name_and_client_certificate(
    serve: Serve, tmp_path: Path, authority: trustme.CA, mutual_tls: grpc.ServerCredentials
) -> None:
    """Certificates are given as the files they came from, the name as on the command line."""
    leaf = authority.issue_cert("client")
    ca, cert, key = (tmp_path / f"{name} file.pem" for name in ("ca", "cert", "key"))
    authority.cert_pem.write_to_path(ca)
    leaf.cert_chain_pems[0].write_to_path(cert)
    leaf.private_key_pem.write_to_path(key)
    engine = Recorder()
    target = Target(
        serve(engine.services, tls=mutual_tls),
        tls=load_tls(enabled=True, ca=ca, cert=cert, key=key),
        authority="engine.invalid",
    )
    assert "grpc-status: 0" in run(curl_line(target, INFO, b""))


@needs_curl
def test_proxy_variables_are_ignored(serve: Serve) -> None:
    """A proxy for the web does not get between the line and the engine."""
    line = curl_line(Target(serve(Recorder().services)), INFO, b"")
    printed = run(line, http_proxy="http://127.0.0.1:9", all_proxy="http://127.0.0.1:9")
    assert "grpc-status: 0" in printed


@pytest.mark.parametrize(
    ("target", "method", "url"),
    [
        (Target("dns:///h:5"), GENERATE, "http://h:5/openengine.v1.Inference/Generate"),
        (Target("ipv6:[::1]:5"), GENERATE, "'http://[::1]:5/openengine.v1.Inference/Generate'"),
        (
            Target("dns:///h:5", control="dns:///c:6"),
            INFO,
            "http://c:6/openengine.v1.Control/GetServerInfo",
        ),
        (
            Target("dns:///h:5", control="dns:///c:6"),
            GENERATE,
            "http://h:5/openengine.v1.Inference/Generate",
        ),
    ],
)
def test_url(target: Target, method: str, url: str) -> None:
    """The URL names the listener that serves the RPC."""
    assert curl_line(target, method, b"").endswith(f" {url}")
