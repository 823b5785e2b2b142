from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import cli

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_of_requirements_is_current() -> None:
    """docs/reference/requirements.md is what the command prints."""
    done = CliRunner().invoke(cli, ["requirements", "--markdown"])
    if done.output != (DOCS / "reference" / "requirements.md").read_text(encoding="utf-8"):
        pytest.fail("stale: oe-conform requirements --markdown > docs/reference/requirements.md")
