"""Trace context as strategies: valid, of later versions, and spoilt in one place."""

from __future__ import annotations

from hypothesis import strategies as st

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"
VALID_STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"

# Each breaks one rule: the version, zero ids, the case, the length, a missing or an extra field,
# a wrong separator, no hexadecimal.
INVALID = (
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE.upper()}-{SPAN}-01",
    f"00-{TRACE}-{SPAN.upper()}-01",
    f"00-{TRACE[:-1]}-{SPAN}-01",
    f"00-{TRACE}0-{SPAN}-01",
    f"00-{TRACE}-{SPAN}",
    f"00-{TRACE}-{SPAN}-",
    f"00-{TRACE}-{SPAN}-1",
    f"00-{TRACE}-{SPAN}-01-extra",
    f"00-{TRACE}-{SPAN}-01-",
    f"00_{TRACE}_{SPAN}_01",
    f"00-{TRACE[:-1]}g-{SPAN}-01",
    f"0-{TRACE}-{SPAN}-01",
    f"01{TRACE}{SPAN}01",
    "",
    "-",
    "not a traceparent",
    f"{VALID},{VALID}",
)
FUTURE = (
    f"01-{TRACE}-{SPAN}-01-extra",
    f"00-{TRACE}-{SPAN}-ff",
    f"01-{TRACE}-{SPAN}-01",
    f"cc-{TRACE}-{SPAN}-00-what-the-future-will-be-like",
    f"fe-{TRACE}-{SPAN}-03",
    f"00-{TRACE}-{SPAN}-02",
    f"00-{TRACE}-{SPAN}-80",
)
# Nothing that is a list of key=value members of the right letters.
UNPARSABLE_STATES = (
    "no-member",
    "=value",
    "UPPER=1",
    "a=1,a=2",
    "key=with=sign",
    "a@b@c=1",
    ",".join(f"k{number}=1" for number in range(40)),
    "k=" + "v" * 300,
    ";;;",
)

_HEX = "0123456789abcdef"


def _hex(digits: int) -> st.SearchStrategy[str]:
    return st.text(_HEX, min_size=digits, max_size=digits)


def _id(digits: int) -> st.SearchStrategy[str]:
    """Hexadecimal and never zero, which is no id and what Hypothesis tries first."""
    return st.builds("{}{}".format, _hex(digits - 1), st.sampled_from(_HEX[1:]))


def parents(
    versions: st.SearchStrategy[str], flags: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    """Well-shaped traceparent values."""
    return st.builds("{}-{}-{}-{}".format, versions, _id(32), _id(16), flags)


def valid_parents() -> st.SearchStrategy[str]:
    """Version 00."""
    return parents(st.just("00"), st.sampled_from(("00", "01")))


def future_parents() -> st.SearchStrategy[str]:
    """Higher versions, with or without more fields, and any flags of version 00."""
    versions = st.integers(1, 254).map("{:02x}".format)
    rest = st.just("") | st.text(f"{_HEX}-xyz", max_size=8).map(lambda text: f"-{text}")
    later = st.builds(lambda parent, more: parent + more, parents(versions, _hex(2)), rest)
    return later | parents(st.just("00"), st.integers(2, 255).map("{:02x}".format))


def invalid_parents() -> st.SearchStrategy[str]:
    """A valid value with one letter replaced, removed or added; a few stay valid."""
    letters = st.sampled_from(f"{_HEX}ABCDEFgz-_ ")
    places = st.integers(0, len(VALID) - 1)
    replaced = st.builds(
        lambda text, at, letter: text[:at] + letter + text[at + 1 :],
        valid_parents(),
        places,
        letters,
    )
    removed = st.builds(lambda text, at: text[:at] + text[at + 1 :], valid_parents(), places)
    added = st.builds(
        lambda text, at, letter: text[:at] + letter + text[at:], valid_parents(), places, letters
    )
    return replaced | removed | added | st.sampled_from(INVALID)


def states() -> st.SearchStrategy[str]:
    """Values of tracestate, most of them unparsable."""
    printable = "".join(chr(code) for code in range(0x20, 0x7F))
    return st.sampled_from((VALID_STATE, *UNPARSABLE_STATES)) | st.text(printable, max_size=24)
