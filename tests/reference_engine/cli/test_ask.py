"""`oe-engine ask` against a served model."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from reference_engine.cli.ask import ask
from reference_engine.engine.config import EngineConfig
from reference_engine.errors import ConfigError
from reference_engine.model.load import load_model
from tests.reference_engine.server.running import serving


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the small model is served."""
    with serving(load_model("tiny"), EngineConfig(num_blocks=160)) as running:
        yield running.app.address


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(ask, ["What is it?", "--max-tokens", "8", *arguments])


def test_the_answer_is_printed(address: str) -> None:
    """Text and a line end, the same for the same greedy question."""
    first, second = asked("--target", address), asked("--target", address)
    assert first.exit_code == 0, first.output
    assert len(first.output.strip()) > 0
    assert first.output == second.output


def test_raw_leaves_the_template_out(address: str) -> None:
    """Another prompt gives another answer."""
    assert asked("--target", address, "--raw").output != asked("--target", address).output


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear error that names the target."""
    monkeypatch.setattr("reference_engine.cli.ask._CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"127.0.0.1:{server.getsockname()[1]}"
        error = asked("--target", target).exception
    assert isinstance(error, ConfigError)
    assert target in str(error)


def test_a_refusal_is_told(address: str) -> None:
    """What the engine says is passed on."""
    error = asked("--target", address, "--max-tokens", "100000").exception
    assert isinstance(error, ConfigError)
    assert "INVALID_ARGUMENT" in str(error)
