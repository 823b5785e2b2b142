from __future__ import annotations

from tests.conformance.cli.conftest import oe_conform

__all__ = ["oe_conform"]
