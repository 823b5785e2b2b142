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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conformance.runner.opened import Opened
    from conformance.runner.plan import Row
    from conformance.runner.result import CheckResult, Failure

_NODE = "oe-conform"
_NOT_JUDGED = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--oe-*` options."""
    group = parser.getgroup("oe-conform", "conformance of an OpenEngine or HTTP target")
    group.addoption(
        "--oe-target", metavar="ADDRESS", help="judge the target at host:port or http://host:port"
    )
    group.addoption(
        "--oe-profile",
        action="append",
        default=[],
        help="only this profile; HTTP: the one that is judged, runtimes/NAME@BUILD or workers/NAME",
    )
    group.addoption("--oe-id", action="append", default=[], help="only this id or glob")
    group.addoption("--oe-model", default="", help="model to test (default: the first served)")
    group.addoption("--oe-budget", default="quick", help="quick, standard or thorough")
    group.addoption("--oe-seed", type=int, default=0, help="seed of the generated requests")
    group.addoption("--oe-slow-factor", type=float, default=1.0, help="widens every time limit")
    group.addoption("--oe-baseline", metavar="FILE", help="known deviations: they xfail")
    group.addoption("--oe-config", metavar="FILE", help="settings (default: oe-conform.toml)")
    group.addoption(
        "--oe-scripted", action="store_true", help="HTTP: the target serves the scripted model"
    )
    group.addoption(
        "--oe-condition",
        action="append",
        default=[],
        metavar="NAME",
        help="HTTP: this condition of the runtime profile holds",
    )
    group.addoption(
        "--oe-allow",
        default="",
        metavar="EFFECT[,EFFECT]",
        help="HTTP: effects that calls may have",
    )
    group.addoption(
        "--oe-context-tokens", type=int, default=0, help="HTTP: the longest prompt of the target"
    )


@pytest.fixture(scope="session")
def oe_target(pytestconfig: pytest.Config) -> Any:
    """The target: an address or an HTTP origin, or, for TLS and credentials, a
    `conformance.wire.target.Target` or a `conformance.http.target.HttpTarget`.

    Override it in the conftest.py of the root directory to start your engine:

        @pytest.fixture(scope="session")
        def oe_target():
            with start_my_engine() as port:
                yield f"127.0.0.1:{port}"
    """
    return pytestconfig.getoption("--oe-target")


@pytest.fixture(scope="session")
def oe_session(oe_target: Any, pytestconfig: pytest.Config) -> Opened:
    """The opened target. Ends the whole run with exit code 2 when it cannot be judged: one line
    says why, instead of one error for each requirement.
    """
    from conformance.errors import ConformError
    from conformance.runner.plugin_setup import opened

    try:
        return opened(oe_target, pytestconfig.getoption)
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
        from conformance.runner.plugin_setup import selected

        try:
            rows = selected(self.config.getoption)
        except ConformError as error:
            raise pytest.UsageError(f"oe-conform: {error}") from error
        return [RequirementItem.from_parent(self, name=row.id, callobj=_judge) for row in rows]


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


def _judge(request: pytest.FixtureRequest, oe_session: Opened) -> None:
    from conformance.model.status import Status

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
            lines = _evidence(oe_session, result.failure)
            pytest.fail("\n".join([judgement.status.value, *lines]), pytrace=False)
        case Status.BLOCKED | Status.HOOK_MISSING | Status.NOT_APPLICABLE:
            pytest.skip(f"{judgement.status.value}: {judgement.detail}")
        case _:
            pytest.fail(f"{judgement.status.value}: {judgement.detail}", pytrace=False)


def _evidence(session: Opened, failure: Failure) -> Iterator[str]:
    from conformance.reports.evidence import evidence
    from conformance.reports.http_call import http_evidence
    from conformance.runner.session import Session

    if isinstance(session, Session):
        return evidence(failure, session.registry, session.options.target, session.routes)
    profile = session.declared.profile_name
    return http_evidence(failure, session.registry, session.address, profile)


def _hold_against_baseline(session: Opened, result: CheckResult) -> None:
    """A known deviation xfails, and what the baseline says wrongly of this requirement fails. Over
    HTTP what the runtime profile says of it is part of the baseline.

    Each item is alone: that no more rows fail than a glob allows, or fewer, is seen by
    `oe-conform run` only.
    """
    from conformance.runner.baseline import compare, shown

    baseline, name = session.options.baseline, result.judgement.requirement
    entry = None if baseline is None else baseline.of(name)
    if baseline is None or entry is None:
        return
    failures = () if result.failure is None else (result.failure,)
    run = shown(failures, (result.judgement,))
    own = () if entry.at_most is not None and name not in run.failing else (entry,)
    comparison = compare(replace(baseline, entries=own), run)
    if comparison.problems:
        pytest.fail("\n".join(comparison.problems), pytrace=False)
    if name in comparison.known:
        pytest.xfail(f"known deviation: {entry.reason} ({entry.issue})")


@contextlib.contextmanager
def _turn(session: Opened, row: Row) -> Iterator[None]:
    """Keeps an exclusive requirement alone on the target, across the processes of pytest-xdist.

    A shared or exclusive lock on a file named after the target; without xdist there is only one
    process, and nothing to wait for.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    import fcntl

    name = hashlib.sha256(session.address.encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"oe-conform-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if row.exclusive else fcntl.LOCK_SH)
        yield
