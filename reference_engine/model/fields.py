"""Typed access to the fields that describe a checkpoint; errors name the file and the field."""

from collections.abc import Mapping
from typing import Any

from reference_engine.errors import CheckpointError


class Fields:
    """The fields of one file: JSON of a Hugging Face directory or metadata of a GGUF file."""

    def __init__(self, source: str, values: Mapping[str, Any]) -> None:
        self.source = source
        self.values = values

    def _wrong(self, name: str, expected: str) -> CheckpointError:
        value = self.values.get(name)
        found = "missing" if value is None else repr(value)
        return CheckpointError(f"{self.source}: {name} is {found}, expected {expected}")

    def positive_int(self, name: str, default: int | None = None) -> int:
        """A whole number of at least 1; absent and null take the default if there is one."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(name, "a whole number of at least 1")
        return value

    def positive_float(self, name: str, default: float | None = None) -> float:
        """A number above 0; absent and null take the default if there is one."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self._wrong(name, "a number above 0")
        return float(value)

    def boolean(self, name: str, default: bool) -> bool:
        """A truth value; absent and null take the default."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def text(self, name: str) -> str | None:
        """A string, None if absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def token_ids(self, name: str) -> tuple[int, ...]:
        """One id or a list of ids; absent and null give none."""
        value = self.values.get(name)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids):
            raise self._wrong(name, "a token id or a list of them")
        return tuple(ids)
