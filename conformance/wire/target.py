"""Where the engine under test listens and how to reach it: addresses, TLS, call metadata."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.errors import ConfigError
from conformance.wire.hooks import Hooks
from conformance.wire.tls import Tls, load_tls
from conformance.wire.transcript import Metadata

__all__ = [
    "Target",
    "Tls",
    "legal_metadata",
    "load_tls",
    "metadata_from",
    "parse_address",
    "secret_names",
]

EXPECTED = "host:port, dns:///host:port, [ipv6]:port or unix:/path"
# sun_path of Linux holds 108 bytes with the closing zero.
UNIX_PATH_BYTES = 107
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\]")
_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
# What gRPC writes itself; a value from outside would be dropped or break the call.
_RESERVED = frozenset({"content-type", "te", "user-agent", "host", "connection"})


@dataclass(frozen=True, slots=True)
class Target:
    """An engine under test.

    address: gRPC target string (`dns:///h:p`, `ipv6:[::1]:5`, `unix:/x`). control: another
    listener for every service outside the data plane. authority: name that stands in for the
    host in `:authority` and in the certificate check. metadata: sent with every call; it may be
    credentials, so it is never printed or stored. secrets: environment variable of each metadata
    key that came from one, for reproduction lines. hooks: how to stop and restart it.
    single_service: whether it serves the one service of the first drafts, under those paths.
    """

    address: str
    control: str | None = None
    tls: Tls | None = None
    authority: str | None = None
    metadata: Metadata = field(default=(), repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    hooks: Hooks = field(default_factory=Hooks, repr=False, compare=False)
    single_service: bool = False


def parse_address(text: str, *, source: str = "--target") -> str:
    """The gRPC target string of an address that a person wrote.

    Raises ConfigError for another scheme, a missing port, a port outside 1 to 65535, a bad host.
    """
    scheme, colon, rest = text.partition(":")
    if not text.strip():
        raise ConfigError("the address is empty", source=source, expected=EXPECTED)
    if colon and scheme == "unix":
        return f"unix:{_unix_path(rest, text, source)}"
    if colon and scheme in {"http", "https"} and rest.startswith("//"):
        raise ConfigError(
            f"{_shown(text)!r}: {scheme} targets are judged by HTTP profiles, with "
            "`oe-conform run --profile runtimes/NAME@BUILD`",
            source=source,
            expected=EXPECTED,
        )
    if colon and scheme == "dns":
        rest = _after_slashes(rest, text, source)
        return _host_port(rest, text, source)
    if colon and scheme in {"ipv4", "ipv6"}:
        return _host_port(rest, text, source)
    if "://" in text:
        raise ConfigError(
            f"{_shown(text)!r}: unknown scheme {scheme!r}", source=source, expected=EXPECTED
        )
    return _host_port(text, text, source)


def metadata_from(options: Sequence[str], from_env: Sequence[str]) -> Metadata:
    """Call metadata of `key=value` options and of `key=NAME` options that name an environment
    variable. A `-bin` key takes base64.

    Raises ConfigError for a key or value that gRPC cannot carry or a missing variable; no error
    ever shows a value.
    """
    pairs = [_pair(option, "--metadata", "key=value") for option in options]
    for option in from_env:
        key, name = _pair(option, "--metadata-env", "key=NAME_OF_VARIABLE")
        value = os.environ.get(name)
        if value is None:
            raise ConfigError(
                f"environment variable {name!r} is not set",
                source="--metadata-env",
                where=key,
                expected="the name of a variable that holds the value",
            )
        pairs.append((key, value))
    return tuple((key, _value(key, text)) for key, text in pairs)


def secret_names(from_env: Sequence[str]) -> dict[str, str]:
    """Environment variable of each metadata key that `metadata_from` reads from one."""
    return dict(_pair(option, "--metadata-env", "key=NAME_OF_VARIABLE") for option in from_env)


def legal_metadata(metadata: Metadata) -> bool:
    """Whether gRPC can carry this metadata; its client refuses anything else by itself."""
    return all(
        _KEY.fullmatch(key) is not None
        and (isinstance(value, bytes) or _VALUE.fullmatch(value) is not None)
        for key, value in metadata
    )


def _after_slashes(rest: str, text: str, source: str) -> str:
    """The endpoint of `dns:///endpoint` or `dns:endpoint`; a DNS server in between is refused."""
    if rest.startswith("///"):
        return rest[3:]
    if rest.startswith("//"):
        raise ConfigError(
            f"{_shown(text)!r} names a DNS server, which is not supported",
            source=source,
            expected="dns:///host:port (three slashes)",
        )
    return rest


def _host_port(endpoint: str, text: str, source: str) -> str:
    host, colon, port = endpoint.rpartition(":")
    if not colon or endpoint.endswith("]"):
        raise ConfigError(f"{_shown(text)!r} has no port", source=source, expected=EXPECTED)
    if ":" in host and not host.startswith("["):
        raise ConfigError(
            f"{_shown(text)!r}: an IPv6 address needs brackets",
            source=source,
            expected="[address]:port",
        )
    ipv6 = _IPV6.fullmatch(host) is not None
    if not ipv6 and _HOST.fullmatch(host) is None:
        raise ConfigError(f"{_shown(text)!r}: bad host", source=source, expected=EXPECTED)
    if not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65535 and len(port) < 7):
        raise ConfigError(
            f"{_shown(text)!r}: bad port {port!r}",
            source=source,
            expected="a port from 1 to 65535",
        )
    return f"ipv6:{host}:{int(port)}" if ipv6 else f"dns:///{host}:{int(port)}"


def _unix_path(rest: str, text: str, source: str) -> str:
    path = rest[2:] if rest.startswith("///") else rest
    if not path or path.startswith("//"):
        raise ConfigError(
            f"{text!r} names no socket file", source=source, expected="unix:/path or unix:///path"
        )
    if len(path.encode()) > UNIX_PATH_BYTES:
        raise ConfigError(
            f"the path of the socket has {len(path.encode())} bytes",
            source=source,
            expected=f"at most {UNIX_PATH_BYTES} bytes",
        )
    return path


def _shown(text: str) -> str:
    """The address without anything before an @: that may be a password."""
    scheme, slashes, rest = text.rpartition("://") if "://" in text else ("", "", text)
    _, at, host = rest.rpartition("@")
    return f"{scheme}{slashes}***@{host}" if at else text


def _pair(option: str, source: str, form: str) -> tuple[str, str]:
    key, equals, value = option.partition("=")
    if not equals or not key:
        # The text may be a bare secret, so it is not shown.
        raise ConfigError("an entry is not a key and a value", source=source, expected=form)
    if _KEY.fullmatch(key) is None:
        expected = f"{key.lower()!r}" if _KEY.fullmatch(key.lower()) else "0-9 a-z _ . -"
        raise ConfigError(f"key {key!r} is not legal in gRPC", source=source, expected=expected)
    if key.startswith("grpc-") or key in _RESERVED:
        raise ConfigError(
            f"key {key!r} is reserved for gRPC itself", source=source, expected="another key"
        )
    return key, value


def _value(key: str, text: str) -> str | bytes:
    if key.endswith("-bin"):
        return _from_base64(key, text)
    if _VALUE.fullmatch(text) is None:
        raise ConfigError(
            "the value has characters that gRPC cannot carry",
            source="metadata",
            where=key,
            expected=f"printable ASCII, or the key {key}-bin with base64",
        )
    return text


def _from_base64(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ConfigError(
            "the value is not base64", source="metadata", where=key, expected="base64 for -bin keys"
        ) from error
