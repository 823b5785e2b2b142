"""Addresses, credentials, and engines behind them."""

import asyncio
import socket

import grpc
import pytest
import trustme

from oe_wire import v1
from oe_wire.services import METHODS
from reference_engine.engine.config import EngineConfig
from reference_engine.errors import ConfigError
from reference_engine.server.app import App, ServeOptions
from reference_engine.server.listen import Address, TlsFiles, credentials, endpoint, parse_address
from tests.reference_engine.server.running import (
    LIMIT,
    Client,
    fake_model,
    generate_request,
    serving,
)

SMALL = EngineConfig(num_blocks=64, block_size=4)
INFO = METHODS["openengine.v1.Control/GetServerInfo"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("localhost:50051", "localhost:50051"),
        ("[::1]:80", "[::1]:80"),
        ("unix:/tmp/engine.sock", "unix:/tmp/engine.sock"),
    ],
)
def test_addresses(text, target):
    """The forms that an option takes."""
    assert parse_address("--listen", text).target == target


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", ":50051", "host:port", "host:65536", "::1:80", "http://h:1", "unix:"],
)
def test_bad_addresses(text):
    """Anything else is refused by a text that names option, value and what was expected."""
    with pytest.raises(ConfigError, match=r"--listen is .*expected host:port") as caught:
        parse_address("--listen", text)
    assert repr(text) in str(caught.value)


def test_wildcards_are_not_advertised():
    """A wildcard address is advertised as a name of the machine, or as the operator says."""
    wildcard = Address("0.0.0.0", 0)
    assert endpoint(wildcard, 5, None, tls=False).host == socket.gethostname()
    assert endpoint(wildcard, 5, "engine.example", tls=False).host == "engine.example"
    assert wildcard.reachable(5) == "127.0.0.1:5"
    assert Address("::", 0).reachable(5) == "[::1]:5"


def test_port_in_use(engine):
    """A second engine on the same port is refused instead of sharing its calls."""
    port = int(engine.app.address.rpartition(":")[2])
    options = ServeOptions(Address("127.0.0.1", port))
    with pytest.raises(ConfigError, match=rf"--listen 127.0.0.1:{port}: cannot listen there"):
        asyncio.run(App.start(fake_model(), SMALL, options))


def test_unix_socket(tmp_path):
    """An engine on a unix socket answers."""
    options = ServeOptions(Address(path=str(tmp_path / "engine.sock")))
    with serving(fake_model(), SMALL, options) as engine:
        assert engine.app.address.startswith("unix:")
        assert engine.generate(generate_request()).code is grpc.StatusCode.OK


def test_unix_socket_with_two_listeners(tmp_path):
    """Discovery cannot name a unix socket, so two listeners need hosts and ports."""
    options = ServeOptions(Address(path=str(tmp_path / "s")), control=Address("127.0.0.1", 0))
    with pytest.raises(ConfigError, match="--control-listen needs host:port"):
        asyncio.run(App.start(fake_model(), SMALL, options))


@pytest.fixture
def files(tmp_path):
    """Certificates of one authority: the server's, a client's, and the authority's own."""
    authority = trustme.CA()
    names = {}
    for name in ("localhost", "client.example"):
        issued = authority.issue_cert(name)
        issued.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
        names[name] = (tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return names, tmp_path / "ca.pem"


def server_info(address, ca, pair=None):
    certificate, key = (path.read_bytes() for path in pair) if pair else (None, None)
    secure = grpc.ssl_channel_credentials(ca.read_bytes(), key, certificate)
    with grpc.secure_channel(address, secure) as channel:
        call = channel.unary_unary(
            INFO.path, INFO.request.SerializeToString, INFO.response.FromString
        )
        return call(v1.GetServerInfoRequest(), timeout=LIMIT)


def test_mutual_tls(files):
    """With a client authority, only callers with a certificate of it are answered."""
    names, ca = files
    tls = TlsFiles(*names["localhost"], client_ca=ca)
    with serving(fake_model(), SMALL, ServeOptions(Address("localhost", 0), tls=tls)) as engine:
        address = engine.app.address
        assert server_info(address, ca, names["client.example"]).instance_id
        with pytest.raises(grpc.RpcError) as caught:
            server_info(address, ca)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_tls(files):
    """With a server certificate alone, a caller that trusts it is answered, plain text is not."""
    names, ca = files
    tls = TlsFiles(*names["localhost"])
    with serving(fake_model(), SMALL, ServeOptions(Address("localhost", 0), tls=tls)) as engine:
        assert server_info(engine.app.address, ca).instance_id
        plain = Client(engine.app.address)
        outcome = plain.call("openengine.v1.Control/GetServerInfo", v1.GetServerInfoRequest())
        plain.channel.close()
        assert outcome.code is grpc.StatusCode.UNAVAILABLE


def test_bad_tls_files(files, tmp_path):
    """A missing file and a key of another certificate are named."""
    names, _ = files
    certificate, key = names["localhost"]
    with pytest.raises(ConfigError, match=r"--tls-key .*missing: No such file"):
        credentials(TlsFiles(certificate, tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"--tls-cert .* expected a PEM"):
        credentials(TlsFiles(certificate, names["client.example"][1]))
    with pytest.raises(ConfigError, match=r"--tls-client-ca .* expected PEM"):
        credentials(TlsFiles(certificate, key, client_ca=key))
