"""The table of what two real v0.1.0 servers do, and of what the suite says of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from conformance.model.status import SEVERITY, Status
from tests.legacy_engine.behaviour import BEHAVIOURS, CLEAN, Behaviour

Lines = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what a server does in a case, the fields of Behaviour that make it, and the lines
    of the report (requirement id -> status). why: the reason for no line.
    """

    peer: str
    case: str
    fields: tuple[str, ...]
    seen: str
    lines: Lines
    why: str

    @property
    def behaviour(self) -> Behaviour:
        """An engine that is right but for this cell."""
        peer = BEHAVIOURS[self.peer]
        return replace(CLEAN, **{name: getattr(peer, name) for name in self.fields})


@cache
def cells(peer: str = "") -> tuple[Cell, ...]:
    """The cells of one server, or of both."""
    file = Path(__file__).parent / "cells.toml"
    rows = tomllib.loads(file.read_text("utf-8"))["cell"]
    return tuple(
        Cell(
            row["peer"],
            row["case"],
            tuple(row["fields"]),
            row["seen"],
            row.get("lines", {}),
            row.get("why", ""),
        )
        for row in rows
        if not peer or row["peer"] == peer
    )


def expected(peer: str) -> Lines:
    """Every line of one server's report; the worst, where several cells speak of one row."""
    lines: dict[str, str] = {}
    for cell in cells(peer):
        for requirement, status in cell.lines.items():
            both = (status, lines.get(requirement, status))
            lines[requirement] = max(both, key=lambda each: SEVERITY.index(Status(each)))
    return lines
