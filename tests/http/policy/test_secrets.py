from __future__ import annotations

import pytest

from conformance.errors import ConfigError
from conformance.http.policy import SECRET_BYTES, SecretReference, secrets_from

VARIABLE = "OE_CONFORM_AUTH_TEST"
REFERENCE = SecretReference("authorization", VARIABLE)


def test_read_at_dispatch() -> None:
    """The value is that of the moment, not that of the beginning."""
    environment = {VARIABLE: "Bearer one"}
    secrets = secrets_from((REFERENCE,), environment)
    assert secrets() == (("authorization", "Bearer one"),)
    environment[VARIABLE] = "Bearer two"
    assert secrets() == (("authorization", "Bearer two"),)


@pytest.mark.parametrize("header", ["Authorization", "cookie", "", "x-api-key "])
def test_other_headers(header: str) -> None:
    """Only two headers carry credentials, spelled exactly."""
    with pytest.raises(ConfigError, match="no credential"):
        SecretReference(header, VARIABLE)


@pytest.mark.parametrize("variable", ["", "A B", "Bearer abc", "1A", "A=B", "A" * 129])
def test_no_variable(variable: str) -> None:
    """What is no name of a variable is refused, and not shown: it may be the secret."""
    with pytest.raises(ConfigError) as refused:
        SecretReference("x-api-key", variable)
    assert len(variable) < 2 or variable not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    ["", " x", "x ", "a\nb", "a\r\nb: c", "a\0b", "\u00e9", "x" * (SECRET_BYTES + 1)],
)
def test_no_header_value(value: str) -> None:
    """A value that no header can carry is refused without being shown."""
    with pytest.raises(ConfigError) as refused:
        REFERENCE.read({VARIABLE: value})
    assert len(value.strip()) < 3 or value not in str(refused.value)


def test_not_set() -> None:
    """A variable that is not set is named."""
    with pytest.raises(ConfigError, match=VARIABLE):
        REFERENCE.read({})


def test_largest() -> None:
    """8 KiB are allowed."""
    assert len(REFERENCE.read({VARIABLE: "x" * SECRET_BYTES})) == SECRET_BYTES
