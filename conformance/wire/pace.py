"""Time limits scaled to the target, so that a slow engine is not called a broken one."""

from __future__ import annotations

from dataclasses import dataclass

# A call that takes less than this is never called late: below it, scheduling noise on a loaded
# machine (hundreds of milliseconds on shared two-core runners) would decide verdicts.
FLOOR_SECONDS = 10.0
# How much slower than the warm-up a call may be before it counts as hanging.
HEADROOM = 20.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the target answered in the warm-up, in seconds.

    slow_factor: the operator's widening of every limit (`--slow-factor`), at least 1.
    """

    unary: float = 0.05
    first_token: float = 0.5
    per_token: float = 0.05
    slow_factor: float = 1.0

    def unary_limit(self) -> float:
        """Seconds that a call without generation may take."""
        return self.slow_factor * (FLOOR_SECONDS + HEADROOM * self.unary)

    def generate_limit(self, tokens: int) -> float:
        """Seconds that a call producing at most `tokens` tokens in all may take."""
        work = self.first_token + self.per_token * tokens
        return self.slow_factor * (2 * FLOOR_SECONDS + HEADROOM * work)

    def required(self, seconds: float) -> float:
        """A limit that a requirement states in seconds, widened by the operator's factor."""
        return self.slow_factor * seconds
