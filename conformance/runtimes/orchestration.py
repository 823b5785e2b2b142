"""What runs a registered runtime and routes to it: Ray Serve, SkyPilot, SkyServe.

An orchestrator adds provenance and a prefix of paths. The runtime behind it keeps its contracts,
and nothing here talks to the orchestrator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from conformance.data import data_dir
from conformance.errors import ConfigError, unknown_name

SCHEMA = "orchestration.json"
TABLE = "orchestration"


@dataclass(frozen=True, slots=True)
class Orchestration:
    """kind: `ray-serve`, `skypilot`, `skyserve`. mode: `cluster` or `service` for the latter two,
    empty for Ray Serve. build: of the orchestrator. locator: names that each kind has of its own.
    route_prefix: what stands before the runtime's own paths, `/` for nothing.
    """

    kind: str
    mode: str
    build: str
    route_prefix: str
    configuration_digest: str
    locator: Mapping[str, str]

    @property
    def json(self) -> dict[str, Any]:
        """As reports show it, with a fingerprint of all the rest."""
        described = {
            "kind": self.kind,
            "mode": self.mode or None,
            "build": self.build,
            "route_prefix": self.route_prefix,
            "configuration_digest": self.configuration_digest,
            "locator": dict(self.locator),
        }
        canonical = json.dumps(described, sort_keys=True, separators=(",", ":")).encode()
        return described | {"fingerprint": f"sha256:{hashlib.sha256(canonical).hexdigest()}"}

    @property
    def text(self) -> str:
        """In one line: `ray-serve 2.49.1, application llm, deployment engine`."""
        names = (f"{name.replace('_', ' ')} {value}" for name, value in self.locator.items())
        return ", ".join([f"{self.kind} {self.build}", *names])

    def path(self, own: str) -> str:
        """Where a path of the runtime is, seen from outside."""
        return own if self.route_prefix == "/" else self.route_prefix + own


def read_orchestration(table: Any, source: str) -> Orchestration | None:
    """The orchestration in an `[orchestration]` table; None for no table.

    Raises ConfigError naming the key and what was expected: a locator of another kind is a
    mistake, and never read as one of this kind.
    """
    if table is None:
        return None
    kinds = _schema()["properties"]["kind"]["enum"]
    kind = table.get("kind") if isinstance(table, dict) else None
    if not isinstance(kind, str):
        raise ConfigError(f"{TABLE}.kind is missing", source=source, expected=" or ".join(kinds))
    if kind not in kinds:
        raise unknown_name(f"{TABLE}.kind", kind, kinds, source=source)
    error = next(iter(_validator(kind).iter_errors(table)), None)
    if error is not None:
        raise _bad(error, source)
    return Orchestration(
        kind=kind,
        mode=table.get("mode", ""),
        build=table["build"],
        route_prefix=table["route_prefix"],
        configuration_digest=table["configuration_digest"],
        locator=MappingProxyType(dict(sorted(table["locator"].items()))),
    )


def _bad(error: ValidationError, source: str) -> ConfigError:
    schema = error.schema if isinstance(error.schema, dict) else {}
    where = ".".join([TABLE, *map(str, error.absolute_path)])
    if error.validator in {"additionalProperties", "required"}:
        expected = "exactly " + ", ".join(schema.get("required", ()))
    else:
        expected = str(schema.get("description", f"{error.validator} {error.validator_value}"))
    return ConfigError(error.message, source=source, where=where, expected=expected)


@cache
def _schema() -> Any:
    return json.loads((data_dir("profiles") / "schema" / SCHEMA).read_text("utf-8"))


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": _schema()["$defs"]})
