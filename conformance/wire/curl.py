"""One shell line that repeats a call with nothing but printf and curl: no suite, no stubs."""

from __future__ import annotations

import base64
import math
import re
import shlex
from collections.abc import Iterator, Mapping

from conformance.wire.connection import address_of
from conformance.wire.diagnosis import endpoint_of
from conformance.wire.single_service import single_path
from conformance.wire.target import Target
from conformance.wire.transcript import Metadata
from oe_wire.services import METHODS

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _./:,")


def curl_line(
    target: Target,
    method: str,
    request_bytes: bytes,
    metadata: Metadata = (),
    *,
    timeout: float = 10.0,
    routes: Mapping[str, str] | None = None,
) -> str:
    """A line for sh that sends `request_bytes` to `package.Service/Rpc` and prints status and
    trailers (`grpc-status`, `grpc-message`); `-o` says where the response messages go.

    Needs a curl with HTTP/2. timeout: seconds. The target's own metadata appears as shell
    variables: the one it was read from, else the key in upper case.
    """
    address = address_of(target, routes or {}, method)
    words = ["-sS", "-m", str(max(1, math.ceil(timeout))), "--noproxy", "*"]
    words += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    for header in _headers(metadata):
        words += ["-H", header]
    quoted = [shlex.quote(word) for word in words]
    quoted += [f'-H "{name}"' for name in _secret_headers(target)]
    quoted += [shlex.quote(word) for word in _connection(target, address)]
    quoted += ["--data-binary @- -D - -o /dev/null", shlex.quote(_url(target, address, method))]
    framed = b"\x00" + len(request_bytes).to_bytes(4, "big") + request_bytes
    return f"printf '{octal(framed)}' | curl {' '.join(quoted)}"


def octal(data: bytes) -> str:
    """The bytes as a printf format that every POSIX shell understands, for single quotes."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)


def _headers(metadata: Metadata) -> Iterator[str]:
    for key, value in metadata:
        text = value if isinstance(value, str) else base64.b64encode(value).decode("ascii")
        # curl drops a header that ends in a colon; a semicolon asks for an empty one.
        yield f"{key}: {text}" if text else f"{key};"


def _secret_headers(target: Target) -> Iterator[str]:
    for key, _ in target.metadata:
        name = target.secrets.get(key) or re.sub(r"[^A-Z0-9]", "_", key.upper())
        yield f"{key}: ${name}"


def _connection(target: Target, address: str) -> Iterator[str]:
    endpoint = endpoint_of(address)
    if isinstance(endpoint, str):
        yield from ("--unix-socket", endpoint)
    if target.tls is None:
        yield "--http2-prior-knowledge"
        if target.authority is not None:
            yield from ("-H", f"host: {target.authority}")
        return
    yield "--http2"
    if target.authority is not None and not isinstance(endpoint, str):
        yield from ("--connect-to", f"::{_host_port(endpoint)}")
    files = (
        ("--cacert", target.tls.ca_path),
        ("--cert", target.tls.cert_path),
        ("--key", target.tls.key_path),
    )
    for option, path in files:
        if path:
            yield from (option, path)


def _url(target: Target, address: str, method: str) -> str:
    endpoint = endpoint_of(address)
    scheme = "http" if target.tls is None else "https"
    host = "localhost" if isinstance(endpoint, str) else _host_port(endpoint)
    if target.tls is not None and target.authority is not None:
        port = "" if isinstance(endpoint, str) else f":{endpoint[1]}"
        host = f"{target.authority}{port}"
    path = single_path(METHODS[method]) if target.single_service else f"/{method}"
    return f"{scheme}://{host}{path}"


def _host_port(endpoint: tuple[str, int]) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
