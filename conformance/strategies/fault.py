"""One illegal thing in a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oe_wire import v1

UINT32_MAX = 2**32 - 1

Change = Callable[[v1.GenerateRequest], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One illegal thing: the requirement that forbids it, a short name, and how to make it so.

    `apply` also removes what would break a second rule together with it.
    """

    rule: str
    name: str
    apply: Change


def fault(row: str, name: str, apply: Change) -> Fault:
    """A fault of the core row (`GEN-001`)."""
    return Fault(f"OE-CORE-{row}", name, apply)


def assigned(row: str, path: str, value: object) -> Fault:
    """A fault that only assigns one field."""
    *parents, leaf = path.split(".")

    def apply(request: v1.GenerateRequest) -> None:
        target: object = request
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, leaf, value)

    return fault(row, f"{path}={value}" if not isinstance(value, str) else path, apply)
