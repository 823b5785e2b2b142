"""Reads one profile file: TOML, checked against its JSON Schema, into a Profile."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from conformance.data import data_dir
from conformance.errors import ConfigError
from conformance.model.expression import Expression, parse
from conformance.model.profile import (
    Absent,
    Capability,
    Prerequisite,
    Profile,
    Rpc,
    Service,
    Zero,
)
from conformance.model.requirement import Level, Need, Requirement, Subject

Table = dict[str, Any]
Parser = Callable[[Table, str, str], Expression]


def read_table(file: Traversable, schema: str = "profile.json") -> tuple[Table, str]:
    """The tables of a TOML file that match a schema of `profiles/schema`, and the sha256 of its
    bytes. Raises ConfigError.
    """
    try:
        content = file.read_bytes()
        table = tomllib.loads(content.decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"cannot be read ({error})", source=file.name, expected="a readable TOML file in UTF-8"
        ) from error
    _validate(table, file.name, schema)
    return table, hashlib.sha256(content).hexdigest()


def build_profile(table: Table, source: str, digest: str, profiles: Collection[str]) -> Profile:
    """The Profile of a validated table; `profiles` are the names its expressions may use."""
    parser = _expression_parser(source, profiles)
    head = table["profile"]
    return Profile(
        name=head["name"],
        major=head["major"],
        minor=head["minor"],
        stage=head["stage"],
        summary=head["summary"],
        roles=tuple(head["roles"]),
        capability=head.get("capability", ""),
        health_services=tuple(head["health_services"]),
        prerequisites=tuple(Prerequisite(**entry) for entry in head["prerequisites"]),
        features=tuple(head.get("features", ())),
        incompatible=tuple(tuple(tokens) for tokens in head.get("incompatible", ())),
        id_prefixes=tuple(head["id_prefixes"]),
        messages=tuple(head["messages"]),
        services=tuple(_service(row, parser) for row in table["service"]),
        capabilities=tuple(_capability(row, parser) for row in table.get("capability", ())),
        requirements=tuple(
            _requirement(row, head["name"], parser) for row in table.get("requirement", ())
        ),
        source=source,
        digest=digest,
    )


def _service(row: Table, parser: Parser) -> Service:
    name = row["name"]
    rpcs = tuple(
        Rpc(
            name=rpc["name"],
            required=rpc.get("required", True),
            when=parser(rpc, "when", f"service {name}, rpc {rpc['name']}"),
            alias_of=rpc.get("alias_of", ""),
        )
        for rpc in row["rpcs"]
    )
    return Service(name, rpcs)


def _capability(row: Table, parser: Parser) -> Capability:
    default = row.get("default")
    return Capability(
        path=row["path"],
        scope=row["scope"],
        type=row["type"],
        absent=Absent(row.get("absent", "default")),
        zero=Zero(row["zero"]),
        text=row["text"],
        default=tuple(default) if isinstance(default, list) else default,
        fallback=row.get("fallback"),
        minimum=row.get("min"),
        maximum=row.get("max"),
        relation=parser(row, "relation", f"capability {row['path']}"),
        features=tuple(row.get("features", ())),
    )


def _requirement(row: Table, profile: str, parser: Parser) -> Requirement:
    return Requirement(
        id=row["id"],
        profile=profile,
        level=Level(row["level"]),
        text=row["text"],
        sources=tuple(row["sources"]),
        applies=parser(row, "applies", f"requirement {row['id']}"),
        needs=frozenset(Need(need) for need in row.get("needs", ())),
        legacy=row.get("legacy", False),
        tolerates=row.get("tolerates", ""),
        subject=Subject(row.get("subject", "engine")),
    )


def _expression_parser(source: str, profiles: Collection[str]) -> Parser:
    def parser(row: Table, key: str, where: str) -> Expression:
        try:
            return parse(row.get(key, ""), profiles)
        except ConfigError as error:
            raise ConfigError(
                error.problem, source=source, where=f"{where}, {key}", expected=error.expected
            ) from error

    return parser


@cache
def _validator(schema: str) -> Draft202012Validator:
    text = (data_dir("profiles") / "schema" / schema).read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def _validate(table: Table, source: str, schema: str) -> None:
    found = _validator(schema).iter_errors(table)
    errors = sorted(found, key=lambda error: list(map(str, error.path)))
    if errors:
        error = errors[0]
        raise ConfigError(
            error.message, source=source, where=_place(table, error), expected=_expectation(error)
        )


def _place(table: Table, error: ValidationError) -> str:
    """Key of the offending value, with the row's own name where it has one."""
    place = ""
    value: Any = table
    for part in error.absolute_path:
        value = value[part]
        if isinstance(part, int):
            named = isinstance(value, dict)
            label = next((value[k] for k in ("id", "path", "name") if named and k in value), part)
            place += f"[{label}]"
        else:
            place += f".{part}" if place else str(part)
    return place or "top level"


def _expectation(error: ValidationError) -> str:
    schema: Table = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        return "only " + ", ".join(schema.get("properties", {}))
    if error.validator == "enum":
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    return str(schema.get("description", f"{error.validator} {error.validator_value}"))
