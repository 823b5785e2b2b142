"""Addresses and credentials of listeners, checked before gRPC sees them."""

import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from reference_engine.errors import ConfigError
from reference_engine.server.deployment import Endpoint

WILDCARDS = frozenset(("0.0.0.0", "::"))  # noqa: S104


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a host and port (0 = any free one), or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def target(self) -> str:
        """As gRPC takes it to bind."""
        return f"unix:{self.path}" if self.path else _joined(self.host, self.port)

    def reachable(self, port: int) -> str:
        """As a client on this machine takes it, once bound to `port`."""
        if self.path:
            return self.target
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return _joined(host, port)


def parse_address(option: str, text: str) -> Address:
    """The address in an option's text; ConfigError unless host:port, [ipv6]:port or unix:path."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return Address(path=text.removeprefix("unix:"))
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:/\[\]]+)):([0-9]{1,5})", text)
    if found is None or int(found[3]) > 65535:
        raise ConfigError(f"{option} is {text!r}, expected host:port, [ipv6]:port or unix:path")
    return Address(host=found[1] or found[2], port=int(found[3]))


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint(address: Address, port: int, advertise_host: str | None, *, tls: bool) -> Endpoint:
    """The listener as discovery names it: a wildcard becomes a name of this machine."""
    host = advertise_host or address.host
    if host in WILDCARDS:
        host = socket.gethostname()
    return Endpoint(host, port, tls)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. With client_ca, callers must present a certificate that it signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


def credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Server credentials from PEM files; ConfigError that names the option of a bad file."""
    certificate = _read("--tls-cert", files.certificate)
    key = _read("--tls-key", files.key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"--tls-cert {files.certificate} and --tls-key {files.key}: expected a PEM "
            f"certificate chain and its key"
        ) from error
    if files.client_ca is None:
        return grpc.ssl_server_credentials([(key, certificate)])
    authority = _read("--tls-client-ca", files.client_ca)
    try:
        ssl.create_default_context(cadata=authority.decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"--tls-client-ca {files.client_ca}: expected PEM certificates"
        ) from error
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror}, expected a readable file") from error


def bind(
    server: grpc.aio.Server, option: str, address: Address, tls: grpc.ServerCredentials | None
) -> int:
    """Bind the listener and return its port; ConfigError when the address cannot be had."""
    try:
        if tls is None:
            port = server.add_insecure_port(address.target)
        else:
            port = server.add_secure_port(address.target, tls)
    except RuntimeError as error:
        raise ConfigError(
            f"{option} {address.target}: cannot listen there, expected an address of this "
            f"machine that is not in use"
        ) from error
    return port
