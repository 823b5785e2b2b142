r"""Regexes of callers: what is refused before llguidance sees it, and what \d, \w and \s mean.

The dialect is Rust's without look-around, word borders and back references. The whole output
matches, so ^ and $ at the ends change nothing.
"""

import re

from reference_engine.errors import GuideError

# A state per count: (a{1000}){1000} has a million, and one mask of it takes 3 s.
MAX_COUNT = 20_000

# ASCII is what all dialects agree on: JavaScript's \d is ASCII, Python's \w has no marks.
_ASCII = {"\\d": "[0-9]", "\\w": "[0-9A-Za-z_]", "\\s": "[ \\t\\n\\r\\f\\v]"}
_PART = re.compile(r"\\.|\[\^?\]?|\]|\{(\d+)(,?)(\d*)\}|\(|\)|.", re.DOTALL)


def portable(pattern: str) -> str:
    r"""The pattern with \d, \w and \s in ASCII, except in negated classes, where that would add.

    Raises GuideError when nested counts multiply to more than MAX_COUNT.
    """
    check_counts(pattern)
    parts: list[str] = []
    depth, negated = 0, False
    for match in _PART.finditer(pattern):
        part = match[0]
        if part.startswith("["):
            negated = negated or part.startswith("[^")
            depth += 1
        elif part == "]" and depth:
            depth -= 1
            negated = negated and depth > 0
        elif part in _ASCII and not negated:
            part = _ASCII[part]
        parts.append(part)
    return "".join(parts)


def check_counts(pattern: str) -> None:
    """GuideError when counted repetitions, nested or in a row, unroll to more than MAX_COUNT."""
    sizes = [0]  # of the open groups, the innermost last
    last = 0  # of the item that a count would repeat
    in_class = 0
    for match in _PART.finditer(pattern):
        part = match[0]
        if in_class or part.startswith("["):
            in_class += part.startswith("[") - (part == "]")
            last = 0 if in_class else 1
            sizes[-1] += last
        elif part == "(":
            sizes.append(0)
        elif part == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif match[1]:
            times = max(1, int(match[1][:9]), int(match[3][:9] or 0))
            sizes[-1] += last * (times - 1)
            last *= times
        elif part not in "*+?|":
            last = 1
            sizes[-1] += last
        if sizes[-1] > MAX_COUNT:
            raise GuideError(f"has counted repetitions of more than {MAX_COUNT} items in all")
