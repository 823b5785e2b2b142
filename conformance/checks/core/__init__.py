"""Checks of the core profile, one module per group of requirements."""

from types import ModuleType

from conformance.checks.core import (
    failures,
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
    streams,
    usage,
)

MODULES: tuple[ModuleType, ...] = (
    failures,
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
    streams,
    usage,
)
