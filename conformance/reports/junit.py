"""JUnit XML: one test case for each requirement, with its true status and clause as properties."""

from __future__ import annotations

from xml.etree import ElementTree

from conformance.model.judgement import Judgement
from conformance.model.requirement import Requirement
from conformance.model.status import Status
from conformance.reports.json_report import report_content
from conformance.reports.titles import title
from conformance.runner.baseline import Known
from conformance.runner.clients import ClientResult, Result
from conformance.runner.report import Report

# JUnit knows three outcomes besides success; the property `status` keeps the true one.
_FAILURES = frozenset({Status.FAIL, Status.FLAKY})
_SKIPS = frozenset({Status.NOT_APPLICABLE, Status.EXCLUDED, Status.HOOK_MISSING, Status.BLOCKED})


def junit_report(report: Report, *, include_payloads: bool = False) -> str:
    """The report as JUnit XML. Requirements without a check are skipped cases."""
    root = ElementTree.Element("testsuites", name="oe-conform")
    by_id = {judgement.requirement: judgement for judgement in report.judgements}
    contents = report_content(report, include_payloads=include_payloads)["requirements"]
    failures = {entry["id"]: entry.get("failure") for entry in contents}
    for profile in report.profiles:
        name = title(report.declared, profile.name, profile.version)
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        suite.set("timestamp", report.started.isoformat(timespec="seconds"))
        _property(suite, "verdict", _legal(report.verdict.text))
        _property(suite, "seed", str(report.seed))
        _property(suite, "target", report.address)
        _property(suite, "profile_digest", profile.digest)
        cases = [
            _case(
                suite,
                requirement,
                by_id.get(requirement.id),
                report.known(requirement.id),
                failures[requirement.id],
            )
            for requirement in profile.requirements
        ]
        for tag, attribute in (
            ("failure", "failures"),
            ("error", "errors"),
            ("skipped", "skipped"),
        ):
            suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
        suite.set("tests", str(len(cases)))
        suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    if report.comparison is not None and report.comparison.problems:
        _baseline_suite(root, report.comparison.problems)
    for client in report.clients:
        _client_suite(root, client)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _client_suite(root: ElementTree.Element, client: ClientResult) -> None:
    """A suite of cases that never fail: an advisory set must not turn a build red."""
    suite = ElementTree.SubElement(root, "testsuite", name=f"client needs: {client.client.title}")
    _property(suite, "digest", client.client.digest)
    for each in client.needs:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=each.need.profile,
            name=each.need.id,
            time=f"{each.seconds:.3f}",
        )
        _property(case, "result", each.result.value)
        _property(case, "otherwise", each.otherwise.value)
        _property(case, "clause", _legal(each.need.text))
        if each.result is Result.NOT_MET:
            told = _legal(f"not met: expected {each.expected}; got {each.detail}")
            ElementTree.SubElement(case, "system-out").text = told
        elif each.result is not Result.MET:
            told = _legal(f"{each.result.value}: {each.detail}")
            ElementTree.SubElement(case, "skipped", message=told)
    skipped = sum(case.find("skipped") is not None for case in suite.iter("testcase"))
    suite.set("tests", str(len(client.needs)))
    suite.set("failures", "0")
    suite.set("errors", "0")
    suite.set("skipped", str(skipped))
    suite.set("time", f"{sum(each.seconds for each in client.needs):.3f}")


def _case(
    suite: ElementTree.Element,
    requirement: Requirement,
    judgement: Judgement | None,
    known: Known | None,
    failure: object,
) -> ElementTree.Element:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"{requirement.profile}.{requirement.group}",
        name=requirement.id,
        time=f"{judgement.seconds if judgement else 0:.3f}",
    )
    _property(case, "requirement", requirement.id)
    _property(case, "level", requirement.level.value)
    _property(case, "status", judgement.status.value if judgement else "unchecked")
    _property(case, "clause", _legal(requirement.text))
    if judgement is None:
        ElementTree.SubElement(case, "skipped", message="unchecked: no check exists yet")
        return case
    detail = _legal(judgement.detail)
    if judgement.reason is not None:
        _property(case, "reason", judgement.reason.value)
    if known is not None:
        message = _legal(f"known deviation: {known.reason} ({known.issue})")
        ElementTree.SubElement(case, "skipped", message=message)
    elif judgement.status in _FAILURES:
        broken = ElementTree.SubElement(
            case, "failure", message=detail, type=judgement.status.value
        )
        broken.text = _legal(str(failure))
    elif judgement.status is Status.ERROR:
        ElementTree.SubElement(case, "error", message=detail, type="error")
    elif judgement.status in _SKIPS:
        ElementTree.SubElement(case, "skipped", message=f"{judgement.status.value}: {detail}")
    elif judgement.status is Status.WARN:
        ElementTree.SubElement(case, "system-out").text = f"warning: {detail}"
    return case


def _baseline_suite(root: ElementTree.Element, problems: tuple[str, ...]) -> None:
    """What is wrong with the baseline itself: a stale entry belongs to no failing requirement."""
    suite = ElementTree.SubElement(root, "testsuite", name="baseline", tests=str(len(problems)))
    suite.set("failures", str(len(problems)))
    for problem in problems:
        name, _, message = problem.partition(": ")
        case = ElementTree.SubElement(suite, "testcase", classname="baseline", name=name)
        ElementTree.SubElement(case, "failure", message=_legal(message), type="baseline")


def _property(parent: ElementTree.Element, name: str, value: str) -> None:
    holder = parent.find("properties")
    if holder is None:
        holder = ElementTree.SubElement(parent, "properties")
    ElementTree.SubElement(holder, "property", name=name, value=value)


def _legal(text: str) -> str:
    """The text without the control characters that XML 1.0 forbids."""
    return "".join(
        character if character in "\t\n" or character >= " " else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
