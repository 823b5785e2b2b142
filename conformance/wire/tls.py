"""Certificates of a TLS connection, read and checked before the first call.

gRPC reports a broken PEM file only as a failed handshake; here it becomes an error with a name.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import ConfigError

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM texts: roots to trust (None: the usual public ones) and the client's certificate."""

    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    ca_path: str = ""
    cert_path: str = ""
    key_path: str = ""


def load_tls(
    *, enabled: bool, ca: Path | None = None, cert: Path | None = None, key: Path | None = None
) -> Tls | None:
    """The TLS settings of the command line; any file given turns TLS on by itself.

    Raises ConfigError for an unreadable file, a file that is not PEM of the right kind, a
    certificate without a key and a key without a certificate.
    """
    if cert and not key:
        raise ConfigError("a certificate without its key", source="--cert", expected="--key FILE")
    if key and not cert:
        raise ConfigError("a key without its certificate", source="--key", expected="--cert FILE")
    if not (enabled or ca or cert):
        return None
    ca_pem = None if ca is None else _certificates("--ca", ca)
    if not (cert and key):
        return Tls(ca=ca_pem, ca_path=_text(ca))
    cert_pem, key_pem = _certificates("--cert", cert), _key(key)
    _match(cert, key)
    return Tls(ca_pem, cert_pem, key_pem, _text(ca), _text(cert), _text(key))


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {str(path)!r}: {error.strerror}",
            source=option,
            expected="a readable PEM file",
        ) from error


def _certificates(option: str, path: Path) -> bytes:
    pem = _read(option, path)
    text = pem.decode("ascii", "replace") if _CERTIFICATE in pem else ""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{str(path)!r} is not a certificate in PEM form", source=option, expected="a PEM file"
        ) from error
    return pem


def _key(path: Path) -> bytes:
    pem = _read("--key", path)
    if b"PRIVATE KEY-----" not in pem:
        raise ConfigError(
            f"{str(path)!r} is not a private key in PEM form", source="--key", expected="a PEM file"
        )
    if b"ENCRYPTED" in pem:
        raise ConfigError(
            f"{str(path)!r} is encrypted", source="--key", expected="a key without a passphrase"
        )
    return pem


def _match(cert: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{str(key)!r} is not the key of {str(cert)!r}",
            source="--key",
            expected="the matching key",
        ) from error
