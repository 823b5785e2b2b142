"""Randomness without state: one number per (seed, output index, token index).

The same request draws the same numbers alone, in any batch, and after preemption.
"""

_MASK = (1 << 64) - 1
# Odd constants of the splitmix64 generator (Steele, Lea and Flood, 2014) and a second odd one
# to keep the output index apart from the token index.
_GAMMA = 0x9E3779B97F4A7C15
_OUTPUT_GAMMA = 0xD1342543DE82EF95


def _mix(value: int) -> int:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, output_index: int, token_index: int) -> float:
    """A number in [0, 1) with 53 random bits; seed is an unsigned 64-bit integer."""
    stream = _mix((seed + _OUTPUT_GAMMA * (output_index + 1)) & _MASK)
    return (_mix((stream + _GAMMA * (token_index + 1)) & _MASK) >> 11) * 2.0**-53
