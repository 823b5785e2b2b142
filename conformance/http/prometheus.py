"""The Prometheus text format, read as far as probes need it: samples by series, types by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_SAMPLE = re.compile(
    r'^(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?P<labels>\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?'
    r"[ \t]+(?P<value>[^ \t]+)(?:[ \t]+-?[0-9]+)?[ \t]*$"
)
_TYPE = re.compile(r"^#[ \t]+TYPE[ \t]+(?P<name>\S+)[ \t]+(?P<type>\S+)[ \t]*$")


@dataclass(frozen=True, slots=True)
class Metrics:
    """samples: value by series, which is a name with its labels as they came. types: of metric
    families by name. faults: numbers of lines (from 1) that are neither sample nor comment.
    """

    samples: Mapping[str, float]
    types: Mapping[str, str]
    faults: tuple[int, ...]

    def counters(self, word: str) -> Mapping[str, float]:
        """Counters whose name contains `word`; a name that ends in _total is one by custom."""
        found = {}
        for series, value in self.samples.items():
            name = series.partition("{")[0]
            if word in name and self._counts(name):
                found[series] = value
        return found

    def _counts(self, name: str) -> bool:
        stated = self.types.get(name) or self.types.get(name.removesuffix("_total"))
        return stated == "counter" if stated else name.endswith("_total")


def parse_prometheus(body: bytes) -> Metrics:
    """Read a body; never raises. A series that comes twice keeps its last value."""
    samples: dict[str, float] = {}
    types: dict[str, str] = {}
    faults = []
    for number, line in enumerate(body.decode("utf-8", errors="replace").split("\n"), 1):
        text = line.rstrip("\r")
        typed, sample = _TYPE.match(text), _SAMPLE.match(text)
        value = _number(sample["value"]) if sample else None
        if typed:
            types[typed["name"]] = typed["type"]
        elif sample and value is not None:
            samples[sample["name"] + (sample["labels"] or "")] = value
        elif text.strip() and not text.startswith("#"):
            faults.append(number)
    return Metrics(samples, types, tuple(faults))


def _number(text: str) -> float | None:
    # `float` takes more than the format has: underscores, for one.
    if text in {"NaN", "+Inf", "-Inf", "Inf"}:
        return math.nan if text == "NaN" else math.inf * (-1 if text[0] == "-" else 1)
    if not re.match(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", text):
        return None
    return float(text)
