from __future__ import annotations

import re
from pathlib import Path

from conformance.checks import all_checks
from conformance.model.registry import default_registry
from conformance.model.requirement import Subject

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_coverage_table_is_true() -> None:
    """A row for each profile with its number of requirements and of those that are kept an eye
    on: by a check, or by the verdict model where a rule binds reports.
    """
    table = re.findall(r"^\| (\w+ \d+\.\d+) \| (\d+) \| (\d+) \|$", README, re.MULTILINE)
    checks = all_checks()
    expected = [
        (
            profile.title,
            str(len(profile.requirements)),
            str(
                sum(
                    row.id in checks or row.subject is Subject.REPORT
                    for row in profile.requirements
                )
            ),
        )
        for profile in default_registry().profiles
    ]
    assert table == expected
