"""Call metadata as strategies: decimals that are none, repeated keys, keys of nobody.

Only what gRPC can carry: upper-case keys, control characters and digits outside ASCII are refused
by the client's own library, so no engine would ever see them.
"""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.oracle.metadata import KNOWN_KEYS, PREFIX, PRIORITY, ROUTING_KEY, TARGET_RANK
from conformance.wire.transcript import Metadata

# What is wrong with each: nothing there, a sign too much, not base ten, no integer, a space
# inside, what Python's int() and other parsers would take, two values in one.
MALFORMED = (
    *("", "+1", "--1", "-", "1-", "+", "0x10", "1e3", "1.0", "1.", ".5", "ff", "1 2", "1_000"),
    *("+0", "0_0"),
    *("1,1", "1;2", '"1"', "one", "NaN", "inf", "null", "true", "1\x7e", "%31", "9" * 17),
)
# Just outside the 32 bits of each key; -1 is a rank with a sign.
TOO_LARGE = {
    PRIORITY: ("2147483648", "-2147483649", "4294967296"),
    TARGET_RANK: ("4294967296", "-1", "-2147483648", "18446744073709551616"),
}
# One metadata of each kind that the data plane refuses.
BAD_KEYS: tuple[Metadata, ...] = (
    ((PRIORITY, "one"),),
    ((TARGET_RANK, "-1"),),
    ((PRIORITY, "1"), (PRIORITY, "1")),
    ((ROUTING_KEY, ""),),
)
PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F))
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789-_."
# Keys that a proxy, a gRPC library or a login in front of the engine acts upon.
_TAKEN = ("grpc-", "openengine-", "traceparent", "tracestate", "authorization", "te", "host")


def malformed_decimals(key: str) -> st.SearchStrategy[Metadata]:
    """A value of PRIORITY or TARGET_RANK that is no decimal of its range; now and then it is one,
    which the oracle tells.
    """
    near = st.text("0123456789+-_xXeE.,abcdef ", max_size=6)
    beyond = st.integers(2**32, 2**70).map(str) | st.integers(-(2**70), -(2**31) - 1).map(str)
    values = st.sampled_from((*MALFORMED, *TOO_LARGE[key])) | near | beyond
    return values.map(lambda value: ((key, value),))


def repeated_keys() -> st.SearchStrategy[Metadata]:
    """One known key two or three times with well-formed values, equal or not; other keys may
    stand between.
    """
    values = {
        PRIORITY: st.integers(-5, 5).map(str),
        TARGET_RANK: st.integers(0, 2).map(str),
        ROUTING_KEY: st.text(PRINTABLE.strip(), min_size=1, max_size=8),
    }

    def several(key: str) -> st.SearchStrategy[Metadata]:
        return st.lists(values[key], min_size=2, max_size=3).map(
            lambda drawn: tuple((key, value) for value in drawn)
        )

    pairs = st.sampled_from(KNOWN_KEYS).flatmap(several)
    between = st.lists(foreign_pair(), max_size=1)
    return st.builds(lambda ours, others: (ours[0], *others, *ours[1:]), pairs, between)


def routing_keys() -> st.SearchStrategy[Metadata]:
    """Routing keys of any printable ASCII, empty among them."""
    return st.text(PRINTABLE, max_size=40).map(lambda value: ((ROUTING_KEY, value),))


def unknown_keys() -> st.SearchStrategy[Metadata]:
    """One `openengine-` key that no rule names, text or binary."""
    names = st.text(_NAME, min_size=1, max_size=20).map(lambda name: PREFIX + name)
    return names.filter(lambda key: key not in KNOWN_KEYS).flatmap(_pair)


def foreign_keys() -> st.SearchStrategy[Metadata]:
    """One to three keys that are nobody's; repeated ones too."""
    return st.lists(foreign_pair(), min_size=1, max_size=3).map(tuple)


def foreign_pair() -> st.SearchStrategy[tuple[str, str | bytes]]:
    """A key that neither the protocol nor anything in front of an engine acts upon."""
    start = st.sampled_from(("x-", "openengine", "priority", "request-id", "model", "oe-", "seed"))
    names = st.builds(lambda first, rest: first + rest, start, st.text(_NAME, max_size=12))
    return names.filter(lambda key: not key.startswith(_TAKEN)).flatmap(_only_pair)


def _only_pair(key: str) -> st.SearchStrategy[tuple[str, str | bytes]]:
    return _pair(key).map(lambda metadata: metadata[0])


def _pair(key: str) -> st.SearchStrategy[Metadata]:
    if key.endswith("-bin"):
        return st.binary(max_size=12).map(lambda value: ((key, value),))
    return st.text(PRINTABLE, max_size=20).map(lambda value: ((key, value),))
