"""Who says what an instance is. What an operator configured becomes the provider's word only where
the provider said the same; a probe that did not see a field changes nothing about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Source(StrEnum):
    """Whose word a field of an identity is."""

    OPERATOR = "operator-configured"
    PROVIDER = "provider-reported"


@dataclass(frozen=True, slots=True)
class Field:
    """One field. contradicted: the provider named something else."""

    value: str
    source: Source = Source.OPERATOR
    contradicted: bool = False


def configured(values: Mapping[str, str]) -> Mapping[str, Field]:
    """An identity as an operator states it."""
    return MappingProxyType({name: Field(value) for name, value in values.items()})


def observed(identity: Mapping[str, Field], seen: Mapping[str, str]) -> Mapping[str, Field]:
    """The identity after something was seen. Fields that are not in `seen` stay as they are, and
    no field takes over the value that was seen: live evidence does not rewrite what was stated.
    """
    return MappingProxyType({name: _weighed(name, field, seen) for name, field in identity.items()})


def _weighed(name: str, field: Field, seen: Mapping[str, str]) -> Field:
    if name not in seen:
        return field
    if seen[name] == field.value and not field.contradicted:
        return Field(field.value, Source.PROVIDER)
    return Field(field.value, Source.OPERATOR, contradicted=True)
