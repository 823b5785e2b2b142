"""Finds out with plain sockets why gRPC cannot talk to an address, so that the error says what to
change: gRPC's own text for a TLS server reached without TLS is just "Socket closed".
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass

from conformance.wire.target import Target

# A client's HTTP/2 greeting: the fixed preface and an empty SETTINGS frame (RFC 9113, 3.4).
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS = 4
_TLS_ALERT = 0x15
# Handshake errors of a peer that does not speak TLS at all; OpenSSL's reasons.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
# Alerts of a server that wants a client certificate, in TLS 1.3 and 1.2.
_WANTS_CERTIFICATE = frozenset(
    {
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
    }
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a connection attempt showed. permanent: waiting longer cannot help. connected: the
    server speaks HTTP/2, so the fault lies in what it does with calls.
    """

    text: str
    permanent: bool = False
    connected: bool = False


def _hopeless(text: str) -> Diagnosis:
    return Diagnosis(text, permanent=True)


def diagnose(target: Target, address: str, timeout: float) -> Diagnosis:
    """What listens at `address` and why gRPC fails there; takes at most about `timeout` seconds.

    Speaks only the greeting, so an engine sees a client that connects and leaves.
    """
    end = time.monotonic() + timeout
    try:
        with _connect(address, timeout) as raw:
            if target.tls is None:
                return _plain(raw, address, end)
            return _over_tls(raw, target, address, end)
    except socket.gaierror as error:
        return Diagnosis(f"the name does not resolve ({error.strerror})")
    except ConnectionRefusedError:
        return Diagnosis("connection refused: nothing listens there")
    except FileNotFoundError:
        return Diagnosis("no such socket file")
    except TimeoutError:
        return Diagnosis("no answer to the connection attempt")
    except OSError as error:
        return Diagnosis(f"cannot connect ({error.strerror or error})")


def endpoint_of(address: str) -> tuple[str, int] | str:
    """Host and port of a parsed address, or the path of a Unix socket."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        return rest
    host, _, port = rest.removeprefix("///").rpartition(":")
    return host.strip("[]"), int(port)


def _connect(address: str, timeout: float) -> socket.socket:
    endpoint = endpoint_of(address)
    if not isinstance(endpoint, str):
        return socket.create_connection(endpoint, timeout)
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(timeout)
    try:
        raw.connect(endpoint)
    except OSError:
        raw.close()
        raise
    return raw


def _plain(raw: socket.socket, address: str, end: float) -> Diagnosis:
    answer = _greet(raw, end)
    if answer == b"" or (answer is not None and answer[0] == _TLS_ALERT):
        if _speaks_tls(address, end):
            return _hopeless("the server speaks TLS; expected --tls (and --ca FILE)")
        return Diagnosis("the server closes the connection at once")
    return _judge(answer)


def _over_tls(raw: socket.socket, target: Target, address: str, end: float) -> Diagnosis:
    raw.settimeout(max(0.05, end - time.monotonic()))
    try:
        with _context(target).wrap_socket(raw, server_hostname=_name(target, address)) as tls:
            answer = _greet(tls, end)
    except ssl.SSLCertVerificationError as error:
        return _hopeless(
            f"the server's certificate is rejected: {error.verify_message}; expected a fitting "
            "--ca FILE or --authority NAME"
        )
    except ssl.SSLEOFError:
        return Diagnosis("the server closes the connection during the TLS handshake")
    except ssl.SSLError as error:
        if error.reason in _NOT_TLS:
            return _hopeless("the server does not speak TLS; expected no --tls")
        if error.reason in _WANTS_CERTIFICATE:
            need = "another" if target.tls is not None and target.tls.cert else "a"
            return _hopeless(f"the server wants {need} client certificate; expected --cert, --key")
        if not error.reason:  # no alert and no answer: the socket itself went away
            return Diagnosis("the server closes the connection during the TLS handshake")
        return _hopeless(f"the TLS handshake fails ({error.reason})")
    except TimeoutError:
        return Diagnosis("the server accepts the connection and says nothing (TLS handshake)")
    except ConnectionError:
        return Diagnosis("the server closes the connection during the TLS handshake")
    if answer == b"":
        # grpcio's servers send no alert when a client certificate is missing or unknown.
        need = "another" if target.tls is not None and target.tls.cert else "a"
        return Diagnosis(
            "the server closes the connection after the TLS handshake; probably it wants "
            f"{need} client certificate (--cert, --key)"
        )
    return _judge(answer)


def _greet(connection: socket.socket, end: float) -> bytes | None:
    """First bytes of the answer to an HTTP/2 greeting: b"" = closed, None = silence."""
    connection.settimeout(max(0.05, end - time.monotonic()))
    try:
        connection.sendall(_PREFACE)
        return connection.recv(64)
    except TimeoutError:
        return None
    except ssl.SSLEOFError:
        return b""
    except ssl.SSLError:  # an alert: the caller knows what it means
        raise
    except OSError:
        return b""


def _judge(answer: bytes | None) -> Diagnosis:
    if answer is None:
        return Diagnosis("the server accepts the connection and says nothing")
    if answer.startswith((b"HTTP/1", b"<")):  # old servers answer HTML without a status line
        return _hopeless("an HTTP/1 server answers; expected a gRPC server (HTTP/2)")
    if len(answer) >= 4 and answer[3] == _SETTINGS:
        text = "an HTTP/2 server answers the connection but not the call"
        return Diagnosis(text, connected=True)
    return _hopeless("the server speaks neither HTTP/2 nor TLS; expected a gRPC server")


def _speaks_tls(address: str, end: float) -> bool:
    """Whether a TLS handshake gets past the first message; the certificate does not matter."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    limit = max(0.05, end - time.monotonic())
    try:
        with _connect(address, limit) as raw, context.wrap_socket(raw):
            return True
    except OSError:
        return False


def _context(target: Target) -> ssl.SSLContext:
    ca = None if target.tls is None or target.tls.ca is None else target.tls.ca.decode("ascii")
    context = ssl.create_default_context(cadata=ca)
    context.set_alpn_protocols(["h2"])
    tls = target.tls
    if tls is not None and tls.cert_path and tls.key_path:
        context.load_cert_chain(tls.cert_path, tls.key_path)
    return context


def _name(target: Target, address: str) -> str:
    if target.authority is not None:
        return target.authority
    endpoint = endpoint_of(address)
    return "localhost" if isinstance(endpoint, str) else endpoint[0]
