"""A request as a server sees it, and the checks of its fields that all APIs share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformance.mutants.http.reply import RefusedError

MODEL = "scripted"
CONTEXT_TOKENS = 1024
MAX_CHOICES = 8
_MAX_STOPS = 4


@dataclass(slots=True)
class Ask:
    """method and path of a route; body: bytes that came; json: the object in it, None when it is
    none. state: the server's own, lives as long as it does.
    """

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    json: dict[str, Any] | None = None
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def stream(self) -> bool:
        """Whether a stream is asked for."""
        return self.json is not None and self.json.get("stream") is True

    @property
    def usage_wanted(self) -> bool:
        """Whether the stream is to carry usage."""
        options = (self.json or {}).get("stream_options") or {}
        return options.get("include_usage") is True


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a request, read with their types and ranges. Raises RefusedError."""

    values: dict[str, Any]

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise RefusedError(400, f"{name} must be a string")
        return value

    def number(self, name: str, least: float, most: float, default: float | None) -> float | None:
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RefusedError(400, f"{name} must be a number")
        if not least <= value <= most:
            raise RefusedError(400, f"{name} must lie between {least} and {most}")
        return value

    def whole(self, name: str, least: int, most: int, default: int | None) -> int | None:
        value = self.number(name, least, most, default)
        if value is not None and not isinstance(value, int):
            raise RefusedError(400, f"{name} must be an integer")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise RefusedError(400, f"{name} must be true or false")
        return value

    def table(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise RefusedError(400, f"{name} must be an object")
        return value

    def stops(self) -> tuple[str, ...]:
        value = self.values.get("stop")
        if value is None:
            return ()
        stops = [value] if isinstance(value, str) else value
        if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
            raise RefusedError(400, "stop must be a string or a list of strings")
        if len(stops) > _MAX_STOPS:
            raise RefusedError(400, f"stop may have at most {_MAX_STOPS} strings")
        return tuple(stops)

    def common(self) -> None:
        """The fields that every sampling API has."""
        if self.text("model") != MODEL:
            raise RefusedError(404, "no such model", "not_found_error")
        self.flag("stream")
        if self.table("stream_options") and not self.values.get("stream"):
            raise RefusedError(400, "stream_options is for streams only")
        self.number("temperature", 0, 2, None)
        self.number("top_p", 0, 1, None)
        self.number("frequency_penalty", -2, 2, None)
        self.number("presence_penalty", -2, 2, None)
