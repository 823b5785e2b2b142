from __future__ import annotations

import pytest
from click.testing import CliRunner

from conformance.cli.main import cli
from conformance.errors import ConfigError
from conformance.http.policy import PolicyError

PROFILE = ("--profile", "runtimes/llama-cpp@b10229")


def _run(target: str, *options: str, **environment: str) -> BaseException | None:
    words = ["run", "--target", target, *PROFILE, *options, "--ready-timeout", "0.2"]
    return CliRunner().invoke(cli, words, env=environment, standalone_mode=False).exception


@pytest.mark.parametrize(
    "target",
    [
        "http://engine.example",
        "https://localhost:8443",
        "https://10.0.0.1",
        "https://169.254.169.254",
        "http://127.0.0.2:8080",
        "https://metadata.google.internal",
    ],
)
def test_refused_before_contact(target: str) -> None:
    """`run` follows the policy, too: what is not public is refused, loopback by another name is."""
    assert isinstance(_run(target), PolicyError)


def test_literal_loopback_is_the_opt_in() -> None:
    """A literal loopback address on the command line is dialled; here nobody listens."""
    refused = _run("http://127.0.0.1:9")
    assert refused is not None
    assert not isinstance(refused, ConfigError)


def test_credentials_by_reference_only() -> None:
    """A credential on the command line is refused, and not repeated."""
    refused = _run("http://127.0.0.1:9", "--metadata", "Authorization=Bearer very-secret")
    assert isinstance(refused, ConfigError)
    assert "metadata-env" in str(refused)
    assert "very-secret" not in str(refused)


@pytest.mark.parametrize("pair", ["cookie=TOKEN", "authorization=Bearer abc", "x-api-key=UNSET"])
def test_bad_references(pair: str) -> None:
    """Other headers, values in the place of names, and variables that are not set: refused."""
    refused = _run("http://127.0.0.1:9", "--metadata-env", pair, TOKEN="x")
    assert isinstance(refused, ConfigError)
    assert "Bearer" not in str(refused)
