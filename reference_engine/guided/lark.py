"""Writes grammars in llguidance's dialect of Lark.

Lower-case names are rules, upper-case ones are terminals. A terminal is one regular expression
and is matched as such; inside a rule each item is a lexeme of its own and takes all it can, so
`/[a-z]*/ "end"` in a rule never ends. Hence everything regular goes into terminals here.
"""

import json
import re

from reference_engine.errors import GuideError

_CONTROL = re.compile(r"[\x7f-\x9f\u2028\u2029]")

# A mask inside a literal of 200,000 characters takes 140 ms, of 20,000 it takes 9 ms.
MAX_LITERAL = 8192


def quoted(text: str) -> str:
    """A literal. GuideError when it is too long, or for a lone surrogate, which is no text."""
    if len(text) > MAX_LITERAL:
        raise GuideError(
            f"has a text of {len(text)} characters, expected at most {MAX_LITERAL} in one piece"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise GuideError("has half a surrogate pair, expected text") from error
    # Lark takes no raw control characters, and JSON escapes only those below a blank.
    return _CONTROL.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )


def char(code: int) -> str:
    """A code point inside a regex or a character class, never taken for an operator."""
    return f"\\x{{{code:X}}}"


def spelled(text: str) -> str:
    """A text as a regex that matches just it."""
    return "".join(char(ord(one)) for one in text)


class LarkWriter:
    """Collects rules under fresh names, so that a caller's names never reach the output."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def name(self) -> str:
        """A fresh name, in lower case."""
        self._count += 1
        return f"r{self._count}"

    def define(self, name: str, body: str) -> str:
        """Add a rule or, with an upper-case name, a terminal; returns the name."""
        self._lines.append(f"{name}: {body}")
        return name

    def rule(self, body: str) -> str:
        """A fresh rule."""
        return self.define(self.name(), body)

    def terminal(self, body: str) -> str:
        """A fresh terminal."""
        return self.define(self.name().upper(), body)

    def lazy(self, terminal: str) -> str:
        """A fresh rule that ends where the terminal is first complete."""
        name = self.name()
        self._lines.append(f"{name}[lazy]: {terminal}")
        return name

    def text(self, start: str) -> str:
        """The whole grammar, beginning with the expression `start`."""
        return "\n".join(["%llguidance {}", f"start: {start}", *self._lines]) + "\n"
