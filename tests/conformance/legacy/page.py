"""The tables of docs/reference/legacy.md and clients.md, made from the data that they show.

`python -m tests.conformance.legacy.page` writes them into the pages; a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from conformance.model.client import client_set
from conformance.model.registry import default_registry
from tests.conformance.legacy.cells import cells

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"


def tolerances() -> Iterator[str]:
    """Rows that only warn a v0.1.0 engine of something."""
    yield "| row | what it only warns of |"
    yield "| --- | --- |"
    for row in default_registry().requirements():
        if row.tolerates:
            yield f"| {row.id} | {row.tolerates} |"


def counts() -> Iterator[str]:
    """How many rows of each profile bind a v0.1.0 engine."""
    yield "| profile | rows | of them for v0.1.0 engines |"
    yield "| --- | --- | --- |"
    for profile in default_registry().profiles:
        bound = sum(row.legacy for row in profile.requirements)
        if bound:
            yield f"| {profile.title} | {len(profile.requirements)} | {bound} |"


def behaviour(peer: str) -> Iterator[str]:
    """One server, cell by cell."""
    yield "| case | what it does | report |"
    yield "| --- | --- | --- |"
    for cell in cells(peer):
        said = ", ".join(f"{status} {row}" for row, status in cell.lines.items())
        yield f"| {cell.case} | {cell.seen} | {said or f'nothing: {cell.why}'} |"


def needs() -> Iterator[str]:
    """What the client demands, and what it does otherwise."""
    client = client_set("dynamo")
    yield "| need | text | otherwise | applies |"
    yield "| --- | --- | --- | --- |"
    for need in client.needs:
        applies = f"`{need.applies}`" if need.applies else "always"
        yield f"| {need.id} | {need.text} | {client.otherwise[need.id]} | {applies} |"


# File -> name of a table in it -> what makes it.
PAGES: Mapping[str, Mapping[str, Callable[[], Iterator[str]]]] = {
    "legacy.md": {
        "counts": counts,
        "tolerances": tolerances,
        "trtllm": lambda: behaviour("trtllm"),
        "mocker": lambda: behaviour("mocker"),
    },
    "clients.md": {"needs": needs},
}


def filled(text: str, tables: Mapping[str, Callable[[], Iterator[str]]]) -> str:
    """The page with each table between its two marks made anew. ValueError for a missing mark."""
    for name, table in tables.items():
        start, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
        before, _, rest = text.partition(start)
        _, mark, after = rest.partition(end)
        if not mark:
            raise ValueError(f"no marks for table {name}")
        text = before + start + "\n" + "\n".join(table()) + "\n\n" + end + after
    return text


def main() -> None:
    """Write the tables."""
    for name, tables in PAGES.items():
        file = DOCS / name
        file.write_text(filled(file.read_text("utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
