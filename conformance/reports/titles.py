"""How a report names a profile: by its version, or as mere rows on a v0.1.0 engine."""

from __future__ import annotations

from conformance.runner.opened import AnyDeclared


def title(declared: AnyDeclared, name: str, version: str) -> str:
    """`core 1.0`; `core rows` on an engine that knows no profiles, which never conforms to one."""
    return f"{name} rows" if declared.legacy else f"{name} {version}"
