"""Reads the JSON of structural tags; every error names the place and what was expected."""

from typing import Any

from reference_engine.errors import GuideError

Json = dict[str, Any]


def child(node: Json, key: str, path: str = "") -> Json:
    """An object inside the node."""
    value = node.get(key)
    if not isinstance(value, dict):
        raise GuideError(f"has no object at {_place(path, key)}")
    return value


def items(node: Json, key: str, path: str = "") -> list[Json]:
    """A list of at least one object inside the node."""
    value = node.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise GuideError(f"has no list of objects at {_place(path, key)}")
    return value


def text_of(node: Json, key: str, path: str) -> str:
    """A string inside the node."""
    value = node.get(key)
    if not isinstance(value, str):
        raise GuideError(f"has no string at {path}.{key}")
    return value


def texts(node: Json, key: str, path: str) -> list[str]:
    """A list of strings inside the node, empty when it is absent."""
    value = node.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise GuideError(f"has no list of strings at {path}.{key}")
    return value


def flag(node: Json, key: str, path: str) -> bool:
    """A boolean inside the node, false when it is absent."""
    value = node.get(key, False)
    if not isinstance(value, bool):
        raise GuideError(f"has no boolean at {path}.{key}")
    return value


def _place(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
