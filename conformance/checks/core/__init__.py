"""Checks of the core profile, one module per group of requirements."""

from types import ModuleType

from conformance.checks.core import (
    abort,
    abort_stream,
    capabilities,
    discovery,
    discovery_endpoints,
    discovery_fields,
    discovery_identity,
    discovery_models,
    failures,
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
    health,
    streams,
    usage,
)

MODULES: tuple[ModuleType, ...] = (
    abort,
    abort_stream,
    capabilities,
    discovery,
    discovery_endpoints,
    discovery_fields,
    discovery_identity,
    discovery_models,
    failures,
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
    health,
    streams,
    usage,
)
