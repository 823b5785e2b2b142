"""Report writers: each turns one Report into text; none has a logic of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.errors import ConfigError
from conformance.reports.json_report import json_report
from conformance.reports.junit import junit_report
from conformance.reports.markdown import markdown_report
from conformance.runner.report import Report

FORMATS: Mapping[str, Callable[..., str]] = {
    "json": json_report,
    "junit": junit_report,
    "markdown": markdown_report,
}


def write_report(report: Report, kind: str, path: Path, *, include_payloads: bool = False) -> None:
    """Write the report in one of FORMATS. Raises ConfigError when the file cannot be written."""
    text = FORMATS[kind](report, include_payloads=include_payloads)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the {kind} report: {error}", source=str(path)) from error
