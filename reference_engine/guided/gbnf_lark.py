"""EBNF rules as Lark: whatever is regular becomes a terminal, only recursion stays a rule."""

from reference_engine.errors import GuideError
from reference_engine.guided.gbnf import (
    Alternatives,
    Literal,
    Node,
    OneOf,
    Ref,
    Repeat,
    Run,
    parse,
)
from reference_engine.guided.lark import LarkWriter, quoted
from reference_engine.guided.regex import MAX_COUNT

# llguidance recurses along rules that use each other; 12,000 in a chain overflow its stack.
MAX_RULES = 1000


def add_ebnf(writer: LarkWriter, source: str) -> str:
    """Add the rules of an EBNF grammar; returns the Lark name of its root.

    Raises GuideError naming the line, or what is missing.
    """
    rules = parse(source)
    if len(rules) > MAX_RULES:
        raise GuideError(f"has {len(rules)} rules, expected at most {MAX_RULES}")
    for node in rules.values():
        for name in _references(node):
            if name not in rules:
                raise GuideError("uses a rule that it does not define")
    return _Translator(writer, rules).root()


def _references(node: Node) -> list[str]:
    """Names of the rules that a node uses, with repeats."""
    found: list[str] = []
    todo: list[Node] = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, Ref):
            found.append(one.name)
        elif isinstance(one, Run):
            todo += one.items
        elif isinstance(one, Alternatives):
            todo += one.options
        elif isinstance(one, Repeat):
            todo.append(one.item)
    return found


def _bottom_up(rules: dict[str, Node]) -> list[str]:
    """The rules that no recursion reaches, each after the ones that it uses."""
    users: dict[str, list[str]] = {name: [] for name in rules}
    open_references = {}
    for name, node in rules.items():
        used = set(_references(node))
        open_references[name] = len(used)
        for one in used:
            users[one].append(name)
    order = [name for name, count in open_references.items() if not count]
    for name in order:
        for user in users[name]:
            open_references[user] -= 1
            if not open_references[user]:
                order.append(user)
    return order


class _Translator:
    def __init__(self, writer: LarkWriter, rules: dict[str, Node]) -> None:
        self._writer = writer
        self._rules = rules
        self._sizes: dict[str, int] = {}
        regular = _bottom_up(rules)
        for name in regular:
            self._sizes[name] = self._size(rules[name])
        self._names = {
            name: writer.name().upper() if name in self._sizes else writer.name() for name in rules
        }

    def root(self) -> str:
        """Write every rule."""
        for name, node in self._rules.items():
            body = self._terms(node) if name in self._sizes else self._mix(node)
            self._writer.define(self._names[name], body)
        return self._names["root"]

    def _size(self, node: Node) -> int:
        """Items of a regular node once counts are unrolled; they become states of a lexer."""
        size = 1
        if isinstance(node, Ref):
            size = self._sizes[node.name]
        elif isinstance(node, Run):
            size = sum(map(self._size, node.items))
        elif isinstance(node, Alternatives):
            size = sum(map(self._size, node.options))
        elif isinstance(node, Repeat):
            size = self._size(node.item) * max(1, node.least, node.most or 0)
        elif isinstance(node, Literal):
            size = len(node.text)
        if size > MAX_COUNT:
            raise GuideError(f"has repetitions and rules of more than {MAX_COUNT} items in all")
        return size

    def _regular(self, node: Node) -> bool:
        return all(name in self._sizes for name in _references(node))

    def _terms(self, node: Node) -> str:
        """A node as the body of a terminal, or of a rule where no part is regular."""
        if isinstance(node, Literal):
            return quoted(node.text)
        if isinstance(node, OneOf):
            return f"/{node.regex}/"
        if isinstance(node, Ref):
            return self._names[node.name]
        if isinstance(node, Run):
            return "(" + (" ".join(map(self._terms, node.items)) or '""') + ")"
        if isinstance(node, Alternatives):
            return "(" + " | ".join(map(self._terms, node.options)) + ")"
        return f"({self._terms(node.item)}){_count(node)}" if node.most != 0 else '""'

    def _mix(self, node: Node) -> str:
        """A node as the body of a rule; regular parts become terminals, as long as can be."""
        if self._regular(node):
            return self._writer.terminal(self._terms(node)) if self._size(node) else '""'
        if isinstance(node, Run):
            return "(" + " ".join(self._mix_run(node)) + ")"
        if isinstance(node, Alternatives):
            return "(" + " | ".join(map(self._mix, node.options)) + ")"
        if isinstance(node, Repeat):
            return f"({self._mix(node.item)}){_count(node)}" if node.most != 0 else '""'
        return self._terms(node)

    def _mix_run(self, run: Run) -> list[str]:
        parts: list[str] = []
        pending: list[Node] = []
        for item in (*run.items, None):
            if item is not None and self._regular(item):
                pending.append(item)
                continue
            if pending:
                parts.append(self._mix(Run(tuple(pending))))
                pending = []
            if item is not None:
                parts.append(self._mix(item))
        return parts


def _count(node: Repeat) -> str:
    if node.most is None and node.least <= 1:
        return "+" if node.least else "*"
    return f"{{{node.least},{'' if node.most is None else node.most}}}"
