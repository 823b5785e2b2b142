"""Runs of the matrices that came to their end."""

from __future__ import annotations

from conformance.runner.report import Report


def whole(report: Report) -> Report:
    """The report of a run that came to its end. The runs of a matrix have no time limit, so what
    ended another one early was a signal, which `run` and `run_http` answer with a partial report.
    """
    if report.ended_early:
        raise KeyboardInterrupt
    return report
