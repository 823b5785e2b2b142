"""The nine statuses and their order."""

from itertools import permutations

from conformance.model.status import EXECUTED, SEVERITY, SkipReason, Status, worst


def test_there_are_nine_statuses_each_with_a_severity() -> None:
    """Every status has exactly one place in the order."""
    assert len(Status) == 9
    assert sorted(SEVERITY) == sorted(Status)


def test_worst_of_nothing_is_not_applicable() -> None:
    """An empty profile is neither good nor bad."""
    assert worst([]) is Status.NOT_APPLICABLE


def test_worst_does_not_depend_on_order() -> None:
    """Any order of the same statuses gives the same answer."""
    for order in permutations([Status.PASS, Status.FAIL, Status.ERROR, Status.EXCLUDED]):
        assert worst(order) is Status.FAIL


def test_evidence_against_the_target_beats_error() -> None:
    """Fail and flaky outrank error, which outranks everything that was merely not run."""
    assert worst([Status.ERROR, Status.FLAKY]) is Status.FLAKY
    assert worst([Status.ERROR, Status.EXCLUDED, Status.BLOCKED]) is Status.ERROR


def test_a_skip_never_hides_behind_a_pass() -> None:
    """Whatever was not observed is worse than a pass or a warning."""
    for status in (Status.HOOK_MISSING, Status.BLOCKED, Status.EXCLUDED):
        assert worst([Status.PASS, status, Status.WARN]) is status


def test_only_judged_answers_count_as_executed() -> None:
    """Skips of any kind and errors are not executed."""
    assert sorted(EXECUTED) == ["fail", "flaky", "pass", "warn"]


def test_names_are_the_words_of_reports() -> None:
    """Statuses and reasons render as their lower-case names."""
    assert f"{Status.NOT_APPLICABLE} {SkipReason.LIMIT_TOO_LARGE}" == (
        "not_applicable limit_too_large"
    )
