"""What the fake engine makes of call metadata: written apart from the oracle, to check it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

PREFIX = "openengine-"
BOUNDS = {
    "openengine-priority": (-(2**31), 2**31 - 1),
    "openengine-target-dp-rank": (0, 0),
}
ROUTING_KEY = "openengine-routing-key"


def is_bad(metadata: Sequence[tuple[str, str | bytes]]) -> bool:
    """Whether a data-plane call with this metadata is refused; there is one rank, 0."""
    ours = [(key, value) for key, value in metadata if key.startswith(PREFIX)]
    if any(count > 1 for count in Counter(key for key, _ in ours).values()):
        return True
    return any(_bad_value(key, value) for key, value in ours if isinstance(value, str))


def _bad_value(key: str, value: str) -> bool:
    if key == ROUTING_KEY:
        return not value
    if key not in BOUNDS:
        return False
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return True
    low, high = BOUNDS[key]
    return not low <= int(value) <= high
