from __future__ import annotations

import pytest

from tests.conformance.legacy.page import DOCS, PAGES, filled


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_data(name: str) -> None:
    """`python -m tests.conformance.legacy.page` has been run since the data changed."""
    text = (DOCS / name).read_text("utf-8")
    assert filled(text, PAGES[name]) == text


def test_a_page_without_marks_is_an_error() -> None:
    """A table that has no place would be lost silently."""
    with pytest.raises(ValueError, match="counts"):
        filled("# no marks", PAGES["legacy.md"])
