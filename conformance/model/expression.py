"""When a requirement applies: a small closed language over what a target declares.

    model.supports_text_input == false or 'top_n' in model.generation.output_logprobs.modes

Python syntax restricted to and/or/not, comparisons, `in`, dotted names, constants, list
literals of constants and `present(name)`. Names and types are checked when it is parsed, so
evaluating never raises.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from conformance.errors import ConfigError
from conformance.model.expression_check import check_condition, dotted_name
from conformance.model.facts import Facts, Value, read

MAX_LENGTH = 500  # characters
MAX_DEPTH = 40  # nested nodes; the longest condition of the shipped profiles has 8


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed condition. Equal when the source text is equal; empty text always holds."""

    source: str
    tree: ast.expr | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.source

    def __bool__(self) -> bool:
        """Whether there is a condition at all; says nothing about whether it holds."""
        return self.tree is not None


ALWAYS = Expression("")

_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def parse(text: str, profiles: Collection[str] = ()) -> Expression:
    """Parse and check `text`; an empty string gives ALWAYS.

    `profiles` are the names that `in profiles` may ask for (none given: not checked). Raises
    ConfigError naming the part that is wrong.
    """
    if not text.strip():
        return ALWAYS
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"expression of {len(text)} characters", expected=f"at most {MAX_LENGTH}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"cannot parse {text!r} ({type(error).__name__})",
            expected="comparisons of declared fields joined by and, or, not",
        ) from error
    if _depth(tree) > MAX_DEPTH:
        raise ConfigError("expression is nested too deep", expected=f"at most {MAX_DEPTH} levels")
    check_condition(tree, frozenset(profiles))
    return Expression(text.strip(), tree)


def _depth(tree: ast.expr) -> int:
    """Levels of nodes, counted without recursion: later passes recurse and unparse."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def evaluate(expression: Expression, facts: Facts) -> bool:
    """Whether the condition holds for `facts`."""
    return expression.tree is None or bool(_value(expression.tree, facts))


def explain(expression: Expression, facts: Facts) -> str:
    """One line naming the leaves that made the condition false; empty when it holds."""
    if evaluate(expression, facts) or expression.tree is None:
        return ""
    return _reason(expression.tree, facts)


def names(expression: Expression) -> tuple[str, ...]:
    """Dotted and plain names that the condition reads, in order of appearance."""
    return () if expression.tree is None else tuple(dict.fromkeys(_names(expression.tree)))


def failing_names(expression: Expression, facts: Facts) -> tuple[str, ...]:
    """Names read by the leaves that made the condition false; empty when it holds.

    A condition without any name (such as `1 > 2`) fails by itself and yields its own text.
    """
    if evaluate(expression, facts) or expression.tree is None:
        return ()
    leaf = _failing(expression.tree, facts)
    return tuple(dict.fromkeys(_names(leaf))) or (expression.source,)


def _names(node: ast.expr) -> list[str]:
    if _reads(node):
        return [dotted_name(node)]
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return [name for child in children if isinstance(child, ast.expr) for name in _names(child)]


def _failing(node: ast.expr, facts: Facts) -> ast.expr:
    """The first false operand of nested `and`s."""
    while isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        node = next(part for part in node.values if not _value(part, facts))
    return node


def _value(node: ast.expr, facts: Facts) -> Value:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_value(part, facts) for part in node.values)
        case ast.BoolOp():
            return any(_value(part, facts) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, facts)
        case ast.UnaryOp(operand=ast.Constant(value=int(number))):
            return -number
        case ast.Compare():
            return _compare(node, facts)
        case ast.Call():
            return _present(_value(node.args[0], facts))
        case ast.List():
            return tuple(_constant(item) for item in node.elts)
        case ast.Constant():
            return _constant(node)
        case ast.Name(id="true" | "false"):
            return node.id == "true"
        case _:
            return read(facts, dotted_name(node))


def _constant(node: ast.expr) -> int | str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | str) else ""


def _present(value: Value) -> bool:
    """Fields without presence count as present when they are not empty."""
    return value is not None and value not in ((), "")


def _compare(node: ast.Compare, facts: Facts) -> bool:
    left = _value(node.left, facts)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, facts)
        if not _holds(op, left, right):
            return False
        left = right
    return True


def _holds(op: ast.cmpop, left: Value, right: Value) -> bool:
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.In() | ast.NotIn():
            inside = isinstance(right, tuple) and left in right
            return inside is isinstance(op, ast.In)
        case _:
            if left is None or right is None:
                return False
            return _ORDER[type(op)](left, right)


def _reason(node: ast.expr, facts: Facts) -> str:
    match node:
        case ast.BoolOp(op=ast.And()):
            return _reason(_failing(node, facts), facts)
        case ast.BoolOp():
            return "; ".join(_reason(part, facts) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return f"{_spelled(node.operand)} holds"
        case ast.Compare():
            seen = [part for part in (node.left, *node.comparators) if _reads(part)]
            state = ", ".join(f"{_spelled(part)} is {_shown(_value(part, facts))}" for part in seen)
            return f"{state} (needs {_spelled(node)})" if seen else f"{_spelled(node)} is false"
        case ast.Call():
            return f"{_spelled(node.args[0])} is absent"
        case _:
            return f"{_spelled(node)} is {_shown(_value(node, facts))}"


def _reads(node: ast.expr) -> bool:
    literal = isinstance(node, ast.Name) and node.id in ("true", "false")
    return isinstance(node, ast.Name | ast.Attribute) and not literal


def _spelled(node: ast.expr) -> str:
    return ast.unparse(node)


def _shown(value: Value) -> str:
    match value:
        case None:
            return "absent"
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(str(item) for item in value) + "]" if value else "empty"
        case str():
            return value or "empty"
        case _:
            return str(value)
