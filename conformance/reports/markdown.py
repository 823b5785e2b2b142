"""A Markdown summary for a CI job page: the claim, a table of profiles, and what is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.model.status import Status
from conformance.reports.json_report import report_content
from conformance.reports.ranges import ranges
from conformance.reports.titles import title
from conformance.runner.clients import ClientResult, Result
from conformance.runner.report import Report

_SHOWN = (Status.FAIL, Status.FLAKY, Status.ERROR, Status.WARN)


def markdown_report(report: Report, *, include_payloads: bool = False) -> str:
    """The report as GitHub-flavoured Markdown."""
    return "\n".join(_lines(report, include_payloads=include_payloads)) + "\n"


def _lines(report: Report, *, include_payloads: bool) -> Iterator[str]:
    content = report_content(report, include_payloads=include_payloads)
    target = content["target"]
    yield "## oe-conform"
    yield ""
    yield f"**{_cell(report.verdict.text)}**"
    yield ""
    if report.ended_early:
        yield f"The run ended early ({report.ended_early}); this is a partial report."
        yield ""
    yield (
        f"Target `{_code(target['address'])}`, {target['class']}, engine "
        f"`{_code(target['engine_name'])} {_code(target['engine_version'])}`, model "
        f"`{_code(target['model'])}`. Suite {content['suite']['version']}, seed {report.seed}, "
        f"budget {report.budget}."
    )
    yield ""
    yield "| profile | claim | executed | pass | fail | flaky | warn | unchecked |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for verdict in report.verdict.profiles:
        counts = verdict.counts
        numbers = (counts.get(status, 0) for status in (Status.PASS, *_SHOWN[:2], Status.WARN))
        yield (
            f"| {title(report.declared, verdict.profile, verdict.version)} "
            f"| {verdict.claim.value} "
            f"| {verdict.executed} of {verdict.expected} | "
            + " | ".join(str(number) for number in numbers)
            + f" | {len(verdict.unchecked)} |"
        )
    broken = [j for status in _SHOWN for j in report.judgements if j.status is status]
    if broken:
        yield ""
        yield "| status | requirement | what was seen |"
        yield "| --- | --- | --- |"
        for judgement in broken:
            yield (
                f"| {judgement.status.value} | {judgement.requirement} "
                f"| {_cell(judgement.detail)} |"
            )
    if report.comparison is not None:
        yield ""
        known = ", ".join(
            f"[{requirement}]({entry.issue})"
            for requirement, entry in report.comparison.known.items()
        )
        yield f"Known deviations: {known or 'none'}"
        for problem in report.comparison.problems:
            yield ""
            yield f"**Baseline:** {_cell(problem)}"
    if report.unchecked:
        yield ""
        yield f"Unchecked (no check exists yet): {ranges(report.unchecked)}"
    for client in report.clients:
        yield from _client(client)
    yield from _details(content)


def _client(client: ClientResult) -> Iterator[str]:
    yield ""
    yield f"### Client needs: {client.client.title}"
    yield ""
    yield f"Advisory: no verdict rests on them. {_cell(client.text)}."
    missing = [each for each in client.needs if each.result is Result.NOT_MET]
    if missing:
        yield ""
        yield "| need | otherwise | what was seen |"
        yield "| --- | --- | --- |"
        for each in missing:
            seen = _cell(f"expected {each.expected}; got {each.detail}")
            yield f"| {each.need.id}: {_cell(each.need.text)} | {each.otherwise.value} | {seen} |"


def _details(content: dict[str, object]) -> Iterator[str]:
    requirements = content["requirements"]
    for entry in requirements if isinstance(requirements, list) else ():
        if "failure" in entry:
            yield ""
            yield f"<details><summary>{entry['id']}</summary>"
            yield ""
            yield "```json"
            yield json.dumps(entry["failure"], indent=2, ensure_ascii=False).replace("```", "` ` `")
            yield "```"
            yield ""
            yield "</details>"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _code(text: str) -> str:
    return _cell(text).replace("`", "'")
