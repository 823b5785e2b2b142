from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme

from conformance.errors import ConfigError
from conformance.wire.connection import Connection
from conformance.wire.target import Target
from conformance.wire.tls import load_tls
from oe_wire import v1
from oe_wire.services import METHODS

SERVER_INFO = METHODS["openengine.v1.Control/GetServerInfo"]
SERVICES = {"Control": {"GetServerInfo": lambda request, context: v1.ServerInfo(engine_name="e")}}


@dataclass(frozen=True)
class Files:
    """Paths of PEM files."""

    ca: Path
    cert: Path
    key: Path
    other_key: Path
    text: Path


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Files:
    """PEM files of a client, and two that do not fit."""
    leaf, other = authority.issue_cert("client"), authority.issue_cert("other")
    made = Files(*(tmp_path / f"{name}.pem" for name in ("ca", "cert", "key", "other", "text")))
    authority.cert_pem.write_to_path(made.ca)
    leaf.cert_chain_pems[0].write_to_path(made.cert)
    leaf.private_key_pem.write_to_path(made.key)
    other.private_key_pem.write_to_path(made.other_key)
    made.text.write_text("not PEM")
    return made


def test_no_option_means_no_tls() -> None:
    """Without any option the connection is plain."""
    assert load_tls(enabled=False) is None


def test_ca_turns_tls_on(files: Files) -> None:
    """A CA file alone is enough."""
    tls = load_tls(enabled=False, ca=files.ca)
    assert tls is not None
    assert tls.ca == files.ca.read_bytes()


def test_key_is_not_in_the_repr(files: Files) -> None:
    """The private key does not appear in a printed target."""
    tls = load_tls(enabled=True, cert=files.cert, key=files.key)
    assert "PRIVATE KEY" not in repr(Target("dns:///a:1", tls=tls))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cert": "cert"}, "--cert: a certificate without its key"),
        ({"key": "key"}, "--key: a key without its certificate"),
        ({"ca": "missing"}, "--ca: cannot read"),
        ({"ca": "text"}, "--ca: .* is not a certificate"),
        ({"ca": "key"}, "--ca: .* is not a certificate"),
        ({"cert": "text", "key": "key"}, "--cert: .* is not a certificate"),
        ({"cert": "cert", "key": "text"}, "--key: .* is not a private key"),
        ({"cert": "cert", "key": "other_key"}, "--key: .* is not the key of"),
    ],
)
def test_unusable_files(files: Files, options: dict[str, str], says: str) -> None:
    """A file that cannot be used is refused by option and name before any connection."""
    paths = {name: getattr(files, value, Path("missing.pem")) for name, value in options.items()}
    with pytest.raises(ConfigError, match=says):
        load_tls(enabled=True, **paths)


def test_folder_as_file(tmp_path: Path) -> None:
    """A folder is an unreadable file, not a crash."""
    with pytest.raises(ConfigError, match="--ca: cannot read"):
        load_tls(enabled=True, ca=tmp_path)


def test_call_over_tls_with_another_name(
    serve: Callable[..., str],
    connect: Callable[..., Connection],
    files: Files,
    server_tls: grpc.ServerCredentials,
) -> None:
    """`authority` stands in for the host in the check of the certificate."""
    target = Target(
        serve(SERVICES, tls=server_tls),
        tls=load_tls(enabled=True, ca=files.ca),
        authority="localhost",
    )
    assert connect(target).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=20).ending.ok


def test_call_over_mutual_tls(
    serve: Callable[..., str],
    connect: Callable[..., Connection],
    files: Files,
    mutual_tls: grpc.ServerCredentials,
) -> None:
    """The client's certificate reaches a server that demands one."""
    target = Target(
        serve(SERVICES, tls=mutual_tls),
        tls=load_tls(enabled=True, ca=files.ca, cert=files.cert, key=files.key),
        authority="localhost",
    )
    assert connect(target).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=20).ending.ok
