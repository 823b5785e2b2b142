"""Facts about an imaginary target, for tests that ask what applies to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from google.protobuf.message import Message

from oe_wire import v1


@dataclass(frozen=True)
class TargetFacts:
    """Declarations of a profile-aware aggregated engine unless told otherwise."""

    model: Message | None = field(default_factory=v1.ModelInfo)
    capabilities: Message | None = field(default_factory=v1.Capabilities)
    engine: Message | None = field(default_factory=v1.EngineInfo)
    role: str = "aggregated"
    dialect: str = "v0.1.0"
    legacy: bool = False
    single_service: bool = False
    generates: bool = True
    profiles: frozenset[str] = frozenset({"core"})


@pytest.fixture
def facts() -> Callable[..., TargetFacts]:
    """Builder of facts."""
    return TargetFacts
