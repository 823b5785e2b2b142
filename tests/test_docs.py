from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import cli

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    ("page", "options"), [("requirements.md", ()), ("http-requirements.md", ("--http",))]
)
def test_the_pages_of_requirements_are_current(page: str, options: tuple[str, ...]) -> None:
    """Each is what the command prints."""
    done = CliRunner().invoke(cli, ["requirements", "--markdown", *options])
    if done.output != (DOCS / "reference" / page).read_text(encoding="utf-8"):
        command = " ".join(("oe-conform requirements --markdown", *options))
        pytest.fail(f"stale: {command} > docs/reference/{page}")
