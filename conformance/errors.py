"""The suite's exceptions: what stopped it from judging a target.

    ConformError            anything the user sees as one line and exit code 2
    ├── ConfigError         a file, option, id or profile name that cannot be used
    ├── UnreachableError    the target gives no usable answer
    └── HarnessError        a defect of the suite itself

A violated requirement is not an error: it is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ConformError(Exception):
    """Base of every error that ends a run without a verdict."""


class ConfigError(ConformError):
    """Input that cannot be used: says the source, the place, the problem and the expectation."""

    def __init__(
        self, problem: str, *, source: str = "", where: str = "", expected: str = ""
    ) -> None:
        self.problem = problem
        self.source = source
        self.where = where
        self.expected = expected
        place = ": ".join(part for part in (source, where) if part)
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text}; expected {expected}" if expected else text)


class UnreachableError(ConformError):
    """The target refused, stayed silent or does not speak the protocol."""


class HarnessError(ConformError):
    """The suite broke one of its own rules; no verdict may rest on what it did."""


def unknown_name(kind: str, name: str, known: Iterable[str], *, source: str = "") -> ConfigError:
    """Error for a name outside `known`, with up to three near matches."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        expected = "perhaps " + ", ".join(near)
    elif len(names) <= 15:
        expected = "one of " + ", ".join(names)
    else:
        expected = f"one of {len(names)} known names, {names[0]} to {names[-1]}"
    return ConfigError(f"unknown {kind} {name!r}", source=source, expected=expected)
