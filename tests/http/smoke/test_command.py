from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import cli
from conformance.cli.smoke import fixture_environment
from conformance.errors import ConfigError
from conformance.records.record import problem_of
from conformance.records.smoke_contract import PREFIX
from conformance.records.store import FILE


def _smoke(*arguments: str, **environment: str) -> Result:
    runner = CliRunner()
    words = {"CI": "true", **environment}
    return runner.invoke(cli, ["smoke", *arguments], env=words, standalone_mode=False)


def test_fixtures(tmp_path: Path) -> None:
    """Without configuration each way to answer of the fixtures is called once, in CI as well."""
    result = _smoke("--store", str(tmp_path))
    assert result.exception is None
    assert result.return_value == 0
    records = [json.loads(line)["record"] for line in result.output.splitlines()]
    assert {("chat", True), ("chat", False)} <= {
        (record["route"], record["terminator_seen"] is True) for record in records
    }
    assert all(problem_of("record", record) == "" for record in records)
    assert len((tmp_path / FILE).read_text().splitlines()) == 3 * len(records)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({PREFIX + "ENDPOINT": "http://127.0.0.1:9"}, "CI is set"),
        ({PREFIX + "ENDPOINT": "http://127.0.0.1:9", "CI": ""}, "RUNTIME is not set"),
        ({PREFIX + "ALLOW_LOOPBACK": "1", "CI": ""}, "ENDPOINT is not set"),
        ({PREFIX + "TIMEOUT": "1", "CI": ""}, "unknown variable"),
        (fixture_environment("http://127.0.0.1:9", "chat") | {"CI": ""}, "unknown runtime profile"),
    ],
)
def test_anything_partial_fails(tmp_path: Path, environment: dict[str, str], problem: str) -> None:
    """One variable is enough for the whole contract to be due; nothing is called without it."""
    result = _smoke("--store", str(tmp_path / "store"), **environment)
    assert isinstance(result.exception, ConfigError)
    assert problem in str(result.exception)
    assert result.output == ""
    assert not (tmp_path / "store").exists()
