"""What an operator sets of the HTTP transport."""

from __future__ import annotations

from dataclasses import dataclass

from reference_engine.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """Paths of the routes; bytes of a request body; seconds from a request's headers to its
    answer. budget_header: a header with which a caller asks for fewer (milliseconds), empty for
    none. response_limit: bytes of a forwarded answer. ConfigError for what makes no sense.
    """

    work_path: str = "/v1/systemone"
    health_path: str = "/health"
    body_limit: int = 1024 * 1024
    budget_seconds: float = 30.0
    budget_header: str = ""
    response_limit: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("work_path", "health_path"):
            path = getattr(self, name)
            if not path.startswith("/"):
                raise ConfigError(f"{name} is {path!r}, expected a path such as /v1/systemone")
        if self.work_path == self.health_path:
            raise ConfigError(f"work_path and health_path are both {self.work_path!r}")
        if self.body_limit < 0 or self.response_limit < 0 or self.budget_seconds <= 0:
            raise ConfigError("a limit is not positive, expected bytes and seconds above 0")
