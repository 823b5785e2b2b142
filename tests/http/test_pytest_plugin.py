"""The pytest plugin on HTTP targets judges as `oe-conform run` does, one item for each row."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.server import Server, serving
from conformance.mutants.http.table import http_mutants
from conformance.runtimes.contracts import http_registry
from tests.http.worker.servers import SETTINGS, on_uvicorn, worker_on

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PROFILE = ("--oe-profile", "runtimes/fixture@1", "--oe-scripted")
ROWS = ("--oe-id", "OE-HTTP-CHAT-03[15]", "--oe-id", "OE-HTTP-CHAT-010")
SHIPPED = """
import sys
sys.path.insert(0, {root!r})
from dataclasses import replace
import pytest
from conformance.mutants.http.fixture import fixture_profile
from conformance.runtimes import registry
from conformance.runtimes.profile import Deviation

profile = replace(fixture_profile(), deviations=({deviations}))
known = {{profile.id: profile, **registry.runtime_profiles()}}
registry.runtime_profiles = lambda: known
"""
KNOWN = 'Deviation("OE-HTTP-CHAT-031", "generates one", "a generated text", "https://x.test/7"),'


def shipped(pytester: pytest.Pytester, deviations: str = "") -> None:
    """The fixture's profile is one of those that are shipped."""
    pytester.makeconftest(SHIPPED.format(root=str(ROOT), deviations=deviations))


def broken(name: str) -> AbstractContextManager[Server]:
    """A server with this mutant."""
    (mutant,) = [each for each in http_mutants() if each.name == name]
    return serving(mutant)


def test_every_row_of_its_contracts(pytester: pytest.Pytester) -> None:
    """The right server passes them all; what needs an allowed effect is not called."""
    shipped(pytester)
    with serving() as server:
        result = pytester.runpytest_subprocess("--oe-target", server.origin, *PROFILE, "-q")
    bound = fixture_profile().contracts
    rows = [row for row in http_registry().requirements() if row.profile in bound]
    outcomes = result.parseoutcomes()
    assert outcomes.pop("skipped") == 1
    assert outcomes == {"passed": len(rows) - 1}


def test_a_failure_shows_the_evidence(pytester: pytest.Pytester) -> None:
    """Expected, actual, the lines to see it again, and the true status for JUnit."""
    shipped(pytester)
    with broken("chat-zero-is-one") as server:
        result = pytester.runpytest_subprocess(
            "--oe-target", server.origin, *PROFILE, *ROWS, "--junitxml=r.xml"
        )
        again = f"*replay *--target {server.origin} --profile runtimes/fixture@1*"
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*OE-HTTP-CHAT-031  MUST*", "  expected  a 4xx status*", again, "  curl *"]
    )
    assert "Traceback" not in result.stdout.str()
    root = ElementTree.parse(pytester.path / "r.xml").getroot()  # noqa: S314 - our own file
    statuses = {
        case.get("name"): item.get("value")
        for case in root.iter("testcase")
        for item in case.findall("properties/property")
        if item.get("name") == "status"
    }
    assert statuses["OE-HTTP-CHAT-031"] == "fail"


def test_a_known_deviation_of_the_profile_xfails(pytester: pytest.Pytester) -> None:
    """And a server that is mended makes the profile stale, as on the command line."""
    shipped(pytester, KNOWN)
    with broken("chat-zero-is-one") as server:
        result = pytester.runpytest_subprocess("--oe-target", server.origin, *PROFILE, *ROWS, "-rx")
    result.assert_outcomes(passed=2, xfailed=1)
    result.stdout.fnmatch_lines(["*known deviation: generates one (https://x.test/7)*"])
    with serving() as server:
        result = pytester.runpytest_subprocess("--oe-target", server.origin, *PROFILE, *ROWS)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*STALE-PROFILE*"])


def test_a_baseline_holds_here_too(pytester: pytest.Pytester) -> None:
    """The operator's entries count beside those of the profile."""
    shipped(pytester)
    (pytester.path / "known.toml").write_text(
        '[[known]]\nid = "OE-HTTP-CHAT-03*"\nreason = "one token"\nat_most = 1\n'
        'issue = "https://x.test/8"\n'
    )
    given = ("--oe-baseline", "known.toml")
    with broken("chat-zero-is-one") as server:
        result = pytester.runpytest_subprocess(
            "--oe-target", server.origin, *PROFILE, *ROWS, *given
        )
    result.assert_outcomes(passed=2, xfailed=1)


def test_a_fixture_gives_the_origin(pytester: pytest.Pytester) -> None:
    """The profile alone says that the target is an HTTP one."""
    fixture = """
from conformance.mutants.http.server import serving

@pytest.fixture(scope="session")
def oe_target():
    with serving() as server:
        yield server.origin
"""
    pytester.makeconftest(SHIPPED.format(root=str(ROOT), deviations="") + fixture)
    pytester.runpytest_subprocess("--oe-target", "mine", *PROFILE, *ROWS).assert_outcomes(passed=3)


def test_a_worker(pytester: pytest.Pytester) -> None:
    """On the terms of the settings file; what needs a stage is skipped and says so."""
    (pytester.path / "there.toml").write_text(
        f"[worker]\nbody_limit = {SETTINGS.body_limit}\n"
        f'budget_seconds = {SETTINGS.budget_seconds}\nbudget_header = "{SETTINGS.budget_header}"\n'
    )
    with worker_on(on_uvicorn) as options:
        result = pytester.runpytest_subprocess(
            "--oe-target",
            options.target.address,
            "--oe-profile",
            "workers/systemone",
            "--oe-config",
            "there.toml",
            "--oe-id",
            "OE-WORK-00[35]",
            "-rs",
        )
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*hook_missing*"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "0 profiles for an HTTP target*one --oe-profile runtimes/"),
        (("--oe-profile", "runtimes/vlm@0.26.0"), "perhaps runtimes/vllm@0.26.0"),
        (("--oe-profile", "runtimes/vllm@0.26.0", "--oe-id", "OE-CORE-*"), "matches no"),
        (("--oe-profile", "runtimes/vllm@0.26.0", "--oe-allow", "all"), "--oe-allow 'all'"),
    ],
)
def test_wrong_options_are_usage_errors(
    pytester: pytest.Pytester, options: tuple[str, ...], said: str
) -> None:
    """In one line, before anything is called."""
    result = pytester.runpytest_subprocess("--oe-target", "http://127.0.0.1:1", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


def test_options_of_the_other_kind(pytester: pytest.Pytester) -> None:
    """A gRPC target has no scripted model."""
    result = pytester.runpytest_subprocess("--oe-target", "127.0.0.1:1", "--oe-scripted")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--oe-scripted without an HTTP target*"])


def test_a_condition_that_does_not_exist_ends_the_run(pytester: pytest.Pytester) -> None:
    """Told once, with exit code 2."""
    shipped(pytester)
    with serving() as server:
        result = pytester.runpytest_subprocess(
            "--oe-target", server.origin, *PROFILE, *ROWS, "--oe-condition", "fast"
        )
    assert result.ret == 2
    assert result.stdout.str().count("unknown condition") == 1
