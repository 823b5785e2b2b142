"""Static check of an `applies` expression: allowed syntax, existing names, matching types."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor

from conformance.errors import ConfigError, unknown_name
from conformance.model.descriptors import enum_labels, is_repeated, message_descriptor, resolve
from conformance.model.facts import ROOTS


@dataclass(frozen=True, slots=True)
class Kind:
    """Type of an operand: bool, number, text or message; `labels` close a set of texts."""

    name: str
    repeated: bool = False
    labels: frozenset[str] = frozenset()
    constant: tuple[str, ...] = ()  # literal texts, to check against the labels of the other side


BOOL = Kind("bool")
NUMBER = Kind("number")
ROLES = frozenset({"aggregated", "prefill", "decode", "unspecified"})
PLAIN: dict[str, Kind] = {
    "role": Kind("text", labels=ROLES),
    "dialect": Kind("text"),
    "legacy": BOOL,
    "generates": BOOL,
    "true": BOOL,
    "false": BOOL,
}


def check_condition(node: ast.expr, profiles: frozenset[str]) -> None:
    """Raise ConfigError unless `node` is a well-formed condition."""
    kind = _kind(node, profiles)
    if kind != BOOL:
        raise _error(node, "is not a condition", "a comparison, a bool field or present(name)")


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` of a chain of attributes. Raises ConfigError for any other node."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{dotted_name(node.value)}.{node.attr}"
        case _:
            raise _error(node, "is not a name", "a dotted name such as model.max_context_length")


def _error(node: ast.expr, problem: str, expected: str) -> ConfigError:
    return ConfigError(f"{ast.unparse(node)!r} {problem}", expected=expected)


def _kind(node: ast.expr, profiles: frozenset[str]) -> Kind:
    match node:
        case ast.BoolOp():
            for part in node.values:
                check_condition(part, profiles)
            return BOOL
        case ast.UnaryOp(op=ast.Not()):
            check_condition(node.operand, profiles)
            return BOOL
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return NUMBER
        case ast.Compare():
            _check_compare(node, profiles)
            return BOOL
        case ast.Call():
            _check_present(node)
            return BOOL
        case ast.List():
            return _list_kind(node)
        case ast.Constant():
            return _constant_kind(node)
        case ast.Name() | ast.Attribute():
            return _name_kind(node, profiles)
        case _:
            raise _error(
                node, "is not part of the language", "and, or, not, comparisons, in, names"
            )


def _constant_kind(node: ast.Constant) -> Kind:
    if isinstance(node.value, str):
        return Kind("text", constant=(node.value,))
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return NUMBER
    raise _error(
        node, "is not a constant of the language", "a quoted text, an integer, true, false"
    )


def _list_kind(node: ast.List) -> Kind:
    kinds = [_constant_kind(item) for item in node.elts if isinstance(item, ast.Constant)]
    if len(kinds) != len(node.elts) or len({kind.name for kind in kinds}) != 1:
        raise _error(node, "is not a list of constants", "one or more constants of one type")
    texts = tuple(text for kind in kinds for text in kind.constant)
    return Kind(kinds[0].name, repeated=True, constant=texts)


def _name_kind(node: ast.expr, profiles: frozenset[str]) -> Kind:
    name = dotted_name(node)
    if name == "profiles":
        return Kind("text", repeated=True, labels=profiles)
    if name in PLAIN:
        return PLAIN[name]
    namespace, _, path = name.partition(".")
    if namespace not in ROOTS or not path:
        known = (*PLAIN, "profiles", *(f"{root}.<field>" for root in ROOTS))
        raise unknown_name("name", name, known)
    return _field_kind(resolve(message_descriptor(ROOTS[namespace]), path))


def _field_kind(field: FieldDescriptor) -> Kind:
    repeated = is_repeated(field)
    if field.enum_type is not None:
        return Kind("text", repeated, enum_labels(field.enum_type))
    if field.message_type is not None:
        return Kind("message", repeated)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Kind("bool", repeated)
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return Kind("text", repeated)
    return Kind("number", repeated)


def _check_present(node: ast.Call) -> None:
    shape = isinstance(node.func, ast.Name) and node.func.id == "present"
    if not shape or len(node.args) != 1 or node.keywords:
        raise _error(node, "is not a known call", "present(name)")
    name = dotted_name(node.args[0])
    if name not in ROOTS and "." not in name:
        raise _error(node, "asks for a name that is always there", "present(model.<field>)")
    if name not in ROOTS:
        _name_kind(node.args[0], frozenset())


def _check_compare(node: ast.Compare, profiles: frozenset[str]) -> None:
    operands = [node.left, *node.comparators]
    kinds = [_kind(part, profiles) for part in operands]
    for op, left, right in zip(node.ops, kinds, kinds[1:], strict=False):
        _check_pair(node, op, left, right)


def _check_pair(node: ast.Compare, op: ast.cmpop, left: Kind, right: Kind) -> None:
    if "message" in (left.name, right.name) or left.name != right.name:
        raise _error(node, f"compares {left.name} with {right.name}", "two values of one type")
    membership = isinstance(op, ast.In | ast.NotIn)
    if left.repeated or right.repeated is not membership:
        raise _error(node, "mixes one value and a list", "value == value, or value in list")
    if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and left.name != "number":
        raise _error(node, f"orders values of type {left.name}", "numbers around < <= > >=")
    if isinstance(op, ast.Is | ast.IsNot):
        raise _error(node, "uses is", "== or present(name)")
    for text, labels in ((left.constant, right.labels), (right.constant, left.labels)):
        for label in text:
            if labels and label not in labels:
                raise unknown_name("value", label, labels, source=ast.unparse(node))
