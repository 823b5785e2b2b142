"""What hostile servers do: with a new connection, or with every call."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from tests.hostile.http2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    SECONDS,
    SETTINGS,
    OnCall,
    OnConnect,
    Peer,
    answer_settings,
    literal,
)

_ENHANCE_YOUR_CALM = 11


@dataclass(frozen=True, slots=True)
class Hostile:
    """said: a part of the one line that the run has to end with."""

    said: str
    on_call: OnCall
    on_connect: OnConnect = answer_settings


def silent(peer: Peer, _: int) -> None:
    """Never answer."""
    peer.closing.wait(SECONDS)


def resets(peer: Peer, stream: int) -> None:
    """Reset each stream at once."""
    peer.send(RST_STREAM, 0, stream, struct.pack(">I", 2))


def hangs_up(peer: Peer) -> None:
    """Reset each connection as soon as it has been made."""
    peer.close()


def garbage(peer: Peer) -> None:
    """Answer the preface with bytes that are no frames."""
    peer.raw(os.urandom(4096))


def endless(peer: Peer, stream: int) -> None:
    """Send empty messages for ever."""
    peer.begin(stream)
    while not peer.closing.is_set():
        peer.message(stream)


def dripping(peer: Peer, stream: int) -> None:
    """Send a message of a thousand bytes, one byte a second."""
    peer.begin(stream)
    peer.send(DATA, 0, stream, b"\0" + struct.pack(">I", 1000))
    while not peer.closing.wait(1.0):
        peer.send(DATA, 0, stream, b"\x0a")


def promising(peer: Peer, stream: int) -> None:
    """Announce a message of 4 GB and send a few bytes of it."""
    peer.begin(stream)
    peer.send(DATA, 0, stream, b"\0" + struct.pack(">I", 0xFFFFFFFF) + b"\x0a\x01a")
    peer.closing.wait(SECONDS)


def html(peer: Peer, stream: int) -> None:
    """Answer like a web server."""
    peer.begin(stream, "text/html")
    peer.send(DATA, 1, stream, b"<html>hello</html>")


def going_away(peer: Peer) -> None:
    """Send every client away as soon as it comes, and again and again."""
    peer.send(SETTINGS, 0, 0)
    for _ in range(100):
        peer.send(GOAWAY, 0, 0, struct.pack(">II", 0, _ENHANCE_YOUR_CALM))
    peer.close()


def unknown(peer: Peer, stream: int) -> None:
    """Fail every call."""
    peer.status(stream, 2, "something happened")


def no_status(peer: Peer, stream: int) -> None:
    """Trailers alone, and no status in them."""
    peer.headers(stream, {":status": "200", "content-type": "application/grpc"}, end=True)


def huge_metadata(peer: Peer, stream: int) -> None:
    """Response headers of 4 MB."""
    fields = {":status": "200", "content-type": "application/grpc"}
    block = b"".join(literal(name, value) for name, value in fields.items())
    peer.send(HEADERS, 0, stream, block)
    for number in range(400):
        peer.send(CONTINUATION, 0, stream, literal(f"x-filler-{number}", "x" * 10_000))
    peer.send(CONTINUATION, END_HEADERS, stream)
    peer.status(stream, 0)


HOSTILE = {
    "silent": Hostile("answers the connection but not the call", silent),
    "resets": Hostile("INTERNAL", resets),
    "hangs up": Hostile("closes the connection at once", silent, hangs_up),
    "garbage": Hostile("neither HTTP/2 nor TLS", silent, garbage),
    "endless": Hostile("messages and no end", endless),
    "dripping": Hostile("answers the connection but not the call", dripping),
    "promising": Hostile("answers the connection but not the call", promising),
    "html": Hostile("END_STREAM", html),
    "going away": Hostile("UNAVAILABLE", silent, going_away),
    "unknown": Hostile("something happened", unknown),
    "no status": Hostile("No status received", no_status),
    "huge metadata": Hostile("metadata size exceeds", huge_metadata),
}
