"""What a call may cost: bytes, headers, chunks and seconds. Nothing a server sends is unbounded."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of one request, one response body and all its header lines; numbers of header lines
    and body chunks; seconds to connect, until the headers, between two chunks, and in all.
    """

    request_bytes: int = 8 * 1024 * 1024
    response_bytes: int = 8 * 1024 * 1024
    header_bytes: int = 16 * 1024
    headers: int = 64
    chunks: int = 65_536
    connect_seconds: float = 5.0
    headers_seconds: float = 60.0
    idle_seconds: float = 60.0
    total_seconds: float = 120.0

    def slower(self, factor: float) -> Limits:
        """The same with every time `factor` times as long."""
        return replace(
            self,
            connect_seconds=self.connect_seconds * factor,
            headers_seconds=self.headers_seconds * factor,
            idle_seconds=self.idle_seconds * factor,
            total_seconds=self.total_seconds * factor,
        )

    def within(self, seconds: float) -> Limits:
        """The same with no time longer than this."""
        return replace(
            self,
            connect_seconds=min(self.connect_seconds, seconds),
            headers_seconds=min(self.headers_seconds, seconds),
            idle_seconds=min(self.idle_seconds, seconds),
            total_seconds=min(self.total_seconds, seconds),
        )


DEFAULT = Limits()
