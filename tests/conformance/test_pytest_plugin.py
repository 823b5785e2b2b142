from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.model.registry import default_registry
from tests.conformance.fake_engine import FakeEngine

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
ROWS = ("--oe-id", "OE-CORE-GEN-01[46]", "--oe-id", "OE-CORE-CAP-016", "--oe-id", "OE-CORE-GEN-001")


@pytest.fixture
def without_cap_016(pytester: pytest.Pytester) -> None:
    """The suite has no check for that row."""
    pytester.makeconftest(
        """
        import conformance.runner.session as session

        checks = {id: each for id, each in session.all_checks().items() if id[-7:] != "CAP-016"}
        session.all_checks = lambda: checks
        """
    )


@pytest.mark.usefixtures("without_cap_016")
def test_one_item_for_each_requirement(pytester: pytest.Pytester, engine: FakeEngine) -> None:
    """Named by id; rows without a check are skipped as unchecked."""
    result = pytester.runpytest_subprocess("--oe-target", engine.address, *ROWS, "-rs", "-v")
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["*OE-CORE-GEN-001 PASSED*", "*unchecked: no check exists yet*"])


def test_a_profile_is_collected_whole(pytester: pytest.Pytester, engine: FakeEngine) -> None:
    """Every requirement of it, and nothing else."""
    result = pytester.runpytest_subprocess(
        "--oe-target", engine.address, "--oe-profile", "scheduling_load", "-q"
    )
    result.assert_outcomes(skipped=len(default_registry().requirements("scheduling_load")))


@pytest.mark.usefixtures("without_cap_016")
def test_a_failure_shows_the_evidence_and_no_traceback(
    pytester: pytest.Pytester, wrong: FakeEngine
) -> None:
    """Expected, actual, replay and curl lines, as `oe-conform run` prints them."""
    result = pytester.runpytest_subprocess("--oe-target", wrong.address, *ROWS)
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*OE-CORE-GEN-016  MUST*", "  expected  INVALID_ARGUMENT*", "  replay *", "  curl *"]
    )
    assert "Traceback" not in result.stdout.str()


@pytest.mark.usefixtures("without_cap_016")
def test_junit_carries_clause_and_true_status(pytester: pytest.Pytester, wrong: FakeEngine) -> None:
    """Skipped rows keep why, failed ones their clause."""
    pytester.runpytest_subprocess("--oe-target", wrong.address, *ROWS, "--junitxml=r.xml")
    root = ElementTree.parse(pytester.path / "r.xml").getroot()  # noqa: S314 - our own file
    seen = {
        case.get("name"): {
            item.get("name"): item.get("value") for item in case.findall("properties/property")
        }
        for case in root.iter("testcase")
    }
    assert seen["OE-CORE-GEN-016"]["status"] == "fail"
    assert seen["OE-CORE-CAP-016"]["status"] == "unchecked"
    row = default_registry().requirement("OE-CORE-GEN-001")
    assert seen[row.id]["clause"] == row.text


def test_without_its_option_it_does_nothing(pytester: pytest.Pytester) -> None:
    """The user's own tests alone are collected, and the suite is not even imported."""
    pytester.makepyfile(
        """
        import sys

        def test_mine():
            assert "hypothesis.strategies" not in sys.modules
            assert "grpc" not in sys.modules
            assert not [name for name in sys.modules if name.startswith("conformance.runner")]
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_a_vendor_starts_the_engine_in_a_fixture(pytester: pytest.Pytester) -> None:
    """`oe_target` of the root conftest wins over the option, and is torn down at the end."""
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        import pytest
        from tests.conformance.fake_engine import FakeEngine

        @pytest.fixture(scope="session")
        def oe_target():
            with FakeEngine() as engine:
                yield engine.address
            print("engine stopped")
        """
    )
    result = pytester.runpytest_subprocess("--oe-target", "mine", *ROWS, "-s")
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["*engine stopped*"])


def test_it_runs_beside_the_users_tests_and_under_k(
    pytester: pytest.Pytester, engine: FakeEngine
) -> None:
    """Both are collected; -k selects among both."""
    pytester.makepyfile("def test_mine(): pass")
    options = ("--oe-target", engine.address, *ROWS)
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=4, skipped=1)
    result = pytester.runpytest_subprocess(*options, "-k", "GEN-014 or mine")
    result.assert_outcomes(passed=2, deselected=3)


def test_it_works_with_xdist(pytester: pytest.Pytester, wrong: FakeEngine) -> None:
    """The same outcomes from two processes."""
    result = pytester.runpytest_subprocess("--oe-target", wrong.address, *ROWS, "-n", "2")
    result.assert_outcomes(passed=2, failed=1, skipped=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--oe-profile", "cores"), "perhaps core"),
        (("--oe-id", "OE-X-*"), "matches no requirement id"),
        (("--oe-budget", "huge"), "quick, standard, thorough"),
    ],
)
def test_wrong_options_are_usage_errors(
    pytester: pytest.Pytester, engine: FakeEngine, options: tuple[str, ...], said: str
) -> None:
    """Before anything runs, in one line."""
    result = pytester.runpytest_subprocess("--oe-target", engine.address, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


def test_an_unreachable_target_is_told_once(pytester: pytest.Pytester) -> None:
    """Not one error for each requirement."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--oe-target", "localhost", *ROWS],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout.count("expected host:port") == 1


def test_a_known_deviation_xfails(pytester: pytest.Pytester, wrong: FakeEngine) -> None:
    """With the reason; on an engine that is mended, the stale entry fails."""
    baseline = pytester.path / "known.toml"
    selected = ("--id", "OE-CORE-GEN-016", "--baseline", str(baseline), "--update-baseline")
    command = [sys.executable, "-m", "conformance", "run", "--target", wrong.address, *selected]
    subprocess.run(command, check=True, cwd=pytester.path, capture_output=True, timeout=120)
    given = ("--oe-baseline", str(baseline), "-rx")
    result = pytester.runpytest_subprocess("--oe-target", wrong.address, *ROWS, *given)
    result.assert_outcomes(passed=2, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(["*known deviation: not explained yet*"])
    with FakeEngine() as right:
        result = pytester.runpytest_subprocess("--oe-target", right.address, *ROWS, *given)
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*OE-CORE-GEN-016: stale*"])
