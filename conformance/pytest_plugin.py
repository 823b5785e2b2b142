"""pytest plugin: `pytest --oe-target host:port` collects one item for each requirement.

Without `--oe-target` it does nothing, and it imports the suite only when it runs: plugins are
loaded into every pytest run of the process that has them installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conformance.runner.plan import Row
    from conformance.runner.result import CheckResult
    from conformance.runner.session import Session
    from conformance.wire.target import Target

_NODE = "oe-conform"
_NOT_JUDGED = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--oe-*` options."""
    group = parser.getgroup("oe-conform", "conformance of an OpenEngine target")
    group.addoption("--oe-target", metavar="ADDRESS", help="judge the engine at this address")
    group.addoption("--oe-profile", action="append", default=[], help="only this profile")
    group.addoption("--oe-id", action="append", default=[], help="only this id or glob")
    group.addoption("--oe-model", default="", help="model to test (default: the first served)")
    group.addoption("--oe-budget", default="quick", help="quick, standard or thorough")
    group.addoption("--oe-seed", type=int, default=0, help="seed of the generated requests")
    group.addoption("--oe-slow-factor", type=float, default=1.0, help="widens every time limit")
    group.addoption("--oe-baseline", metavar="FILE", help="known deviations: they xfail")
    group.addoption("--oe-config", metavar="FILE", help="settings (default: oe-conform.toml)")


@pytest.fixture(scope="session")
def oe_target(pytestconfig: pytest.Config) -> Any:
    """The target: an address, or a `conformance.wire.target.Target` for TLS and credentials.

    Override it in the conftest.py of the root directory to start your engine:

        @pytest.fixture(scope="session")
        def oe_target():
            with start_my_engine() as port:
                yield f"127.0.0.1:{port}"
    """
    return pytestconfig.getoption("--oe-target")


@pytest.fixture(scope="session")
def oe_session(oe_target: Any, pytestconfig: pytest.Config) -> Session:
    """The opened target. Ends the whole run with exit code 2 when it cannot be judged: one line
    says why, instead of one error for each requirement.
    """
    from conformance.errors import ConformError
    from conformance.model.registry import default_registry
    from conformance.runner.baseline import load_baseline
    from conformance.runner.budget import BUDGETS
    from conformance.runner.selection import Selection
    from conformance.runner.session import Options, open_session

    option = pytestconfig.getoption
    known = option("--oe-baseline")
    try:
        return open_session(
            Options(
                target=_target(oe_target, option("--oe-config")),
                baseline=load_baseline(Path(known), default_registry()) if known else None,
                model=option("--oe-model"),
                budget=BUDGETS[option("--oe-budget")],
                seed=option("--oe-seed"),
                selection=Selection(tuple(option("--oe-profile")), tuple(option("--oe-id"))),
                slow_factor=option("--oe-slow-factor"),
            )
        )
    except ConformError as error:
        pytest.exit(f"oe-conform: {error}", returncode=_NOT_JUDGED)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the requirements, first of all hooks, so that -k and -m select among them too."""
    if config.getoption("--oe-target"):
        module = Requirements.from_parent(session, path=Path(__file__), nodeid=_NODE)
        items.extend(module.items())


class Requirements(pytest.Module):
    """The collector of all requirements that the options select."""

    def items(self) -> list[pytest.Item]:
        """One item for each selected requirement. Raises UsageError for a wrong option."""
        from conformance.errors import ConformError
        from conformance.model.registry import default_registry
        from conformance.runner.budget import BUDGETS
        from conformance.runner.selection import Selection, validated

        option = self.config.getoption
        if option("--oe-budget") not in BUDGETS:
            raise pytest.UsageError(
                f"--oe-budget {option('--oe-budget')!r}: expected one of {', '.join(BUDGETS)}"
            )
        registry = default_registry()
        selection = Selection(tuple(option("--oe-profile")), tuple(option("--oe-id")))
        try:
            validated(selection, registry)
        except ConformError as error:
            raise pytest.UsageError(f"oe-conform: {error}") from error
        return [
            RequirementItem.from_parent(self, name=row.id, callobj=_judge)
            for row in registry.requirements()
            if selection.wants(row.profile) and selection.includes(row)
        ]


class RequirementItem(pytest.Function):
    """One requirement. Its id is its name; level, clause and true status are JUnit properties."""

    def reportinfo(self) -> tuple[Path, None, str]:
        return Path(_NODE), None, self.name

    # pytest.Function narrows the signature of its base in the same way.
    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """The evidence alone: a traceback through the suite helps no engine author."""
        if isinstance(excinfo.value, pytest.fail.Exception):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def _judge(request: pytest.FixtureRequest, oe_session: Session) -> None:
    from conformance.model.status import Status
    from conformance.reports.evidence import evidence

    identifier = request.node.name
    row = next(row for row in oe_session.plan.rows if row.requirement.id == identifier)
    note = request.node.user_properties.append
    note(("requirement", identifier))
    note(("profile", row.requirement.profile))
    note(("level", row.requirement.level.value))
    note(("clause", row.requirement.text))
    if row.check is None:
        status = row.status.value if row.status is not None else "unchecked"
        note(("status", status))
        pytest.skip(f"{status}: {row.detail or 'no check exists yet'}")
    with _turn(oe_session, row), contextlib.closing(oe_session.connect()) as connection:
        result = oe_session.judge(row, row.check, connection)
    judgement = result.judgement
    note(("status", judgement.status.value))
    _hold_against_baseline(oe_session, result)
    match judgement.status:
        case Status.PASS:
            return
        case Status.WARN:
            note(("warning", judgement.detail))
        case Status.FAIL | Status.FLAKY if result.failure is not None:
            target, routes = oe_session.options.target, oe_session.routes
            lines = evidence(result.failure, oe_session.registry, target, routes)
            pytest.fail("\n".join([judgement.status.value, *lines]), pytrace=False)
        case Status.BLOCKED | Status.HOOK_MISSING | Status.NOT_APPLICABLE:
            pytest.skip(f"{judgement.status.value}: {judgement.detail}")
        case _:
            pytest.fail(f"{judgement.status.value}: {judgement.detail}", pytrace=False)


def _hold_against_baseline(session: Session, result: CheckResult) -> None:
    """A known deviation xfails, and what the baseline says wrongly of this requirement fails.

    Each item is alone: that no more rows fail than a glob allows, or fewer, is seen by
    `oe-conform run` only.
    """
    from conformance.runner.baseline import Baseline, compare, shown

    baseline, name = session.options.baseline, result.judgement.requirement
    entry = None if baseline is None else baseline.of(name)
    if baseline is None or entry is None:
        return
    failures = () if result.failure is None else (result.failure,)
    run = shown(failures, (result.judgement,))
    own = () if entry.at_most is not None and name not in run.failing else (entry,)
    comparison = compare(Baseline(baseline.path, own), run)
    if comparison.problems:
        pytest.fail("\n".join(comparison.problems), pytrace=False)
    if name in comparison.known:
        pytest.xfail(f"known deviation: {entry.reason} ({entry.issue})")


@contextlib.contextmanager
def _turn(session: Session, row: Row) -> Iterator[None]:
    """Keeps an exclusive requirement alone on the target, across the processes of pytest-xdist.

    A shared or exclusive lock on a file named after the target; without xdist there is only one
    process, and nothing to wait for.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    import fcntl

    name = hashlib.sha256(session.options.target.address.encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"oe-conform-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if row.exclusive else fcntl.LOCK_SH)
        yield


def _target(given: Any, config: str | None) -> Target:
    from conformance.runner.settings import load_settings
    from conformance.wire.target import Target, parse_address

    if isinstance(given, Target):
        return given
    hooks = load_settings(Path(config) if config else None).hooks
    return Target(parse_address(str(given)), hooks=hooks)
