from __future__ import annotations

import pytest

from conformance.reports.ranges import ranges


@pytest.mark.parametrize(
    ("ids", "short"),
    [
        ((), ""),
        (("OE-A-001",), "OE-A-001"),
        (("OE-A-001", "OE-A-002", "OE-A-003", "OE-A-007"), "OE-A-001..003,007"),
        (("OE-A-009", "OE-B-010", "OE-A-010"), "OE-A-009..010  OE-B-010"),
        (("OE-A-998", "OE-A-999", "OE-A-1000"), "OE-A-998..1000"),
    ],
)
def test_runs_of_numbers_are_joined(ids: tuple[str, ...], short: str) -> None:
    """By group, in the order of first appearance; nothing is lost."""
    assert ranges(ids) == short
