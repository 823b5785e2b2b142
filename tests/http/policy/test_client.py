from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import trustme

from conformance.http.addresses import Address
from conformance.http.client import HttpConnection
from conformance.http.exchange import End, Exchange, Request
from conformance.http.origin import Origin
from conformance.http.pinning import PinnedDialer
from conformance.http.policy import Policy, PolicyError, SecretReference, secrets_from
from conformance.http.target import HttpTarget

NAME, PUBLIC = "engine.example", "93.184.216.34"


class _Handler(BaseHTTPRequestHandler):
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        moved = self.path == "/moved"
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("location", "http://169.254.169.254/latest/meta-data/")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


class _PublicSocket(socket.socket):
    """A connection to loopback that says it is one to the address that was dialled."""

    def getpeername(self) -> tuple[str, int]:
        return (PUBLIC, 443)


class Site:
    """A server with a certificate for NAME, as a public one would be seen."""

    def __init__(self, certified: str) -> None:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(certified).configure_cert(context)
        self.trust = ssl.create_default_context()
        authority.configure_trust(self.trust)
        handler = type("Handler", (_Handler,), {"seen": []})
        self.seen: list[dict[str, str]] = handler.seen  # type: ignore[attr-defined]
        self.server = HTTPServer(("127.0.0.1", 0), handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.dialled: list[str] = []
        self.answers = [[PUBLIC]]

    def resolver(self, host: str, seconds: float) -> list[str]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def connector(self, address: Address, port: int, seconds: float) -> socket.socket:
        self.dialled.append(str(address))
        connected = _PublicSocket(socket.AF_INET, socket.SOCK_STREAM)
        connected.settimeout(seconds)
        connected.connect(self.server.server_address)
        return connected

    def call(self, path: str = "/", **target: object) -> Exchange:
        dialer = PinnedDialer(Policy(), self.resolver, self.connector)
        where = HttpTarget(Origin("https", NAME, 443), dialer, tls=self.trust, **target)  # type: ignore[arg-type]
        with HttpConnection(where) as connection:
            return connection.finish(connection.start(Request("GET", path)))


@pytest.fixture
def site() -> Iterator[Callable[[str], Site]]:
    running: list[tuple[Site, threading.Thread]] = []

    def make(certified: str = NAME) -> Site:
        made = Site(certified)
        thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
        thread.start()
        running.append((made, thread))
        return made

    yield make
    for made, thread in running:
        made.server.shutdown()
        thread.join()
        made.server.server_close()


def test_the_name_is_checked_over_the_pinned_address(site: Callable[..., Site]) -> None:
    """The connection goes to the vetted address, and TLS checks the name of the origin."""
    right = site()
    exchange = right.call()
    assert exchange.status == 200
    assert right.dialled == [PUBLIC]
    assert right.seen[0]["host"] == NAME


def test_another_name_in_the_certificate(site: Callable[..., Site]) -> None:
    """A certificate for another name ends the call before a byte of the request."""
    wrong = site("other.example")
    assert wrong.call().ending.kind is End.CONNECT
    assert wrong.seen == []


def test_an_address_in_the_certificate(site: Callable[..., Site]) -> None:
    """A certificate for the address does not stand in for one of the name."""
    wrong = site(PUBLIC)
    assert wrong.call().ending.kind is End.CONNECT


def test_a_redirect_to_metadata_is_an_answer(site: Callable[..., Site]) -> None:
    """A redirect is reported and not followed: one connection, one request."""
    right = site()
    exchange = right.call("/moved")
    assert exchange.status == 302
    assert (len(right.dialled), len(right.seen)) == (1, 1)


def test_rebound_between_calls(site: Callable[..., Site]) -> None:
    """Each call vets anew, so a name that turns to loopback is refused at the second."""
    right = site()
    right.answers = [[PUBLIC], ["127.0.0.1"]]
    assert right.call().status == 200
    with pytest.raises(PolicyError, match="loopback"):
        right.call()
    assert right.dialled == [PUBLIC]


def test_no_proxy_no_compression_no_reuse(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies of the environment are ignored, nothing compressed is asked for, and each call has
    a connection of its own.
    """
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    right = site()
    assert right.call().status == right.call().status == 200
    assert len(right.dialled) == 2
    assert "accept-encoding" not in right.seen[0]


def test_a_credential_goes_to_the_server_alone(site: Callable[..., Site]) -> None:
    """The server gets the header; the exchange keeps its name and not its value."""
    right = site()
    reference = SecretReference("authorization", "OE_CONFORM_AUTH_TEST")
    secrets = secrets_from((reference,), {"OE_CONFORM_AUTH_TEST": "Bearer a-secret-value"})
    exchange = right.call(secrets=secrets)
    assert right.seen[0]["authorization"] == "Bearer a-secret-value"
    assert exchange.request.secret_headers == ("authorization",)
    assert "a-secret-value" not in repr(exchange)
