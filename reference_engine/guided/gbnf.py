"""Reads EBNF as llama.cpp and xgrammar write it (GBNF): `root ::= "a" [0-9]+ (b | c)*`."""

import re
from dataclasses import dataclass

from reference_engine.errors import GuideError
from reference_engine.guided.lark import char

# Deeper nesting than any grammar needs; the parser recurses once per level.
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Literal:
    """A fixed text."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character: a class as a regex."""

    regex: str


@dataclass(frozen=True, slots=True)
class Ref:
    """Another rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Run:
    """Items in a row."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of the options."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times; None is no limit."""

    item: "Node"
    least: int
    most: int | None


Node = Literal | OneOf | Ref | Run | Alternatives | Repeat

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<is>::=)
    | "(?P<text>(?:\\.|[^"\\\n])*)"
    | \[(?P<class>\^?(?:\\.|[^\]\\\n])+)\]
    | (?P<count>\{\s*\d{1,9}\s*(?:,\s*\d{0,9}\s*)?\})
    | (?P<op>[()|*+?.])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|([^\\])", re.DOTALL
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN = frozenset("\\\"'[]^-/.+*?(){}|$")
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def parse(source: str) -> dict[str, Node]:
    """Rules by name. Raises GuideError naming the line that is wrong."""
    return _Parser(source).rules()


class _Parser:
    """Recursive descent over the tokens. A rule ends where the next `name ::=` begins."""

    def __init__(self, source: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        self._at = 0
        self._depth = 0
        position, line = 0, 1
        while position < len(source):
            match = _TOKEN.match(source, position)
            if match is None or match.lastgroup is None:
                raise GuideError(f"line {line} has a character that begins nothing in EBNF")
            if match.lastgroup != "skip":
                self._tokens.append((match.lastgroup, match[match.lastgroup], line))
            line += match[0].count("\n")
            position = match.end()
        self._tokens += [("end", "", line)] * 2

    def rules(self) -> dict[str, Node]:
        """Every rule of the grammar."""
        found: dict[str, Node] = {}
        while self._kind() != "end":
            if not self._begins_rule():
                raise self._error("expected a rule, name ::= ...")
            name = self._tokens[self._at][1]
            if name in found:
                raise self._error("defines a rule for the second time")
            self._at += 2
            found[name] = self._alternatives()
        if "root" not in found:
            raise GuideError("has no rule named root")
        return found

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _is_op(self, text: str) -> bool:
        return self._tokens[self._at][:2] == ("op", text)

    def _begins_rule(self) -> bool:
        return self._kind() == "name" and self._tokens[self._at + 1][0] == "is"

    def _error(self, message: str) -> GuideError:
        return GuideError(f"line {self._tokens[self._at][2]} {message}")

    def _alternatives(self) -> Node:
        options = [self._run()]
        while self._is_op("|"):
            self._at += 1
            options.append(self._run())
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def _run(self) -> Node:
        items: list[Node] = []
        while not (self._kind() == "end" or self._begins_rule()):
            if self._is_op("|") or self._is_op(")"):
                break
            items.append(self._counted(self._item()))
        return items[0] if len(items) == 1 else Run(tuple(items))

    def _counted(self, item: Node) -> Node:
        kind, text, _ = self._tokens[self._at]
        if not self._is_count():
            return item
        least, most = _COUNTS[text] if kind == "op" else self._bounds(text)
        self._at += 1
        if self._is_count():
            raise self._error("has two repetitions in a row")
        return Repeat(item, least, most)

    def _is_count(self) -> bool:
        kind, text, _ = self._tokens[self._at]
        return kind == "count" or (kind == "op" and text in _COUNTS)

    def _bounds(self, text: str) -> tuple[int, int | None]:
        low, comma, high = text[1:-1].partition(",")
        least = int(low)
        most = (int(high) if high.strip() else None) if comma else least
        if most is not None and most < least:
            raise self._error("has a repetition whose maximum is below its minimum")
        return least, most

    def _item(self) -> Node:
        kind, text, _ = self._tokens[self._at]
        if kind == "op" and text == "(":
            return self._group()
        node: Node
        if kind == "text":
            node = Literal("".join(map(chr, self._codes(text))))
        elif kind == "class":
            node = OneOf(self._class(text))
        elif kind == "name":
            node = Ref(text)
        elif kind == "op" and text == ".":
            node = OneOf("(?s:.)")
        else:
            raise self._error("has an operator without an item before it")
        self._at += 1
        return node

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"nests groups deeper than {MAX_DEPTH}")
        self._at += 1
        inner = self._alternatives()
        if not self._is_op(")"):
            raise self._error("has a group that is not closed")
        self._at += 1
        self._depth -= 1
        return inner

    def _codes(self, text: str) -> list[int]:
        codes = []
        for hex2, hex4, hex8, letter, plain in _ESCAPE.findall(text):
            if hex2 or hex4 or hex8:
                code = int(hex2 or hex4 or hex8, 16)
                if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                    raise self._error("has an escape that is no character")
                codes.append(code)
            elif letter in _LETTERS or letter in _PLAIN:
                codes.append(ord(_LETTERS.get(letter, letter)))
            elif letter:
                raise self._error("has an unknown escape")
            else:
                codes.append(ord(plain))
        return codes

    def _class(self, text: str) -> str:
        """The class as a regex; an escaped hyphen is no range."""
        negated = text.startswith("^") and len(text) > 1
        parts = [match[0] for match in _ESCAPE.finditer(text[1:] if negated else text)]
        codes = [self._codes(part)[0] for part in parts]
        ranges = []
        at = 0
        while at < len(codes):
            low = high = codes[at]
            if at + 2 < len(codes) and parts[at + 1] == "-":
                high = codes[at + 2]
                at += 2
            if high < low:
                raise self._error("has a character range whose end is before its start")
            ranges.append(char(low) if low == high else f"{char(low)}-{char(high)}")
            at += 1
        return f"[{'^' if negated else ''}{''.join(ranges)}]"
