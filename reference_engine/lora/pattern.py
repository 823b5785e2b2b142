"""Regular expressions of adapter configurations.

`re` backtracks while it holds the interpreter's lock, so a careless expression could stop the
process. Without repeats of groups and with few repeats at all, a match of a module's name, some 40
characters, takes below 10**6 steps. Hostile alternatives could still take more: that is no
protection from whoever writes the adapters, who decides what the model says anyway.
"""

import re

from reference_engine.errors import AdapterError, UnsupportedAdapterError

MAX_LENGTH = 2048
MAX_REPEATS = 5

# Escapes and classes first, so that what is in them doesn't count.
_REPEAT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<group>\)(?:[*+]|\{))|(?P<one>[*+]|\{)")


def safe_pattern(field: str, text: str) -> re.Pattern[str]:
    """The compiled expression.

    Raises UnsupportedAdapterError for one that could take too long, AdapterError for none at all.
    """
    repeats = 0
    for match in _REPEAT.finditer(text):
        if match["group"]:
            raise UnsupportedAdapterError(f"{field} repeats a group, supported: repeats of one")
        repeats += match["one"] is not None
    if repeats > MAX_REPEATS or len(text) > MAX_LENGTH:
        raise UnsupportedAdapterError(
            f"{field} has {repeats} repeats in {len(text)} characters, "
            f"supported: {MAX_REPEATS} in {MAX_LENGTH}"
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError) as error:
        raise AdapterError(f"{field} is no regular expression: {error}") from error
