from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from conformance.cli.smoke import fixture_environment
from conformance.errors import ConfigError
from conformance.http.policy import PolicyError, SecretReference
from conformance.mutants.http.fixture import fixture_profile
from conformance.records.smoke_contract import (
    OPTIONAL,
    PREFIX,
    REQUIRED,
    SmokeContract,
    given,
    smoke_contract,
)
from conformance.runtimes.profile import Effect, RuntimeProfile, State

WHOLE = fixture_environment("http://127.0.0.1:8080", "chat.stream")
PUBLIC = {
    name: value
    for name, value in (WHOLE | {PREFIX + "ENDPOINT": "https://engine.example"}).items()
    if name != PREFIX + "ALLOW_LOOPBACK"
}
SECRET = "Bearer very-secret-value"


def _remote() -> RuntimeProfile:
    return replace(fixture_profile(), locality=("local", "remote"))


def _contract(
    environment: dict[str, str], profile: RuntimeProfile | None = None, /, **changed: str | None
) -> SmokeContract:
    values: dict[str, str | None] = {PREFIX + name: value for name, value in changed.items()}
    words = {**environment, **values}
    kept = {name: value for name, value in words.items() if value is not None}
    return smoke_contract(kept, lambda _: profile or _remote())


def test_whole() -> None:
    """A complete contract is one, on loopback and beyond."""
    contract = _contract(WHOLE)
    assert (contract.route.name, contract.stream, contract.policy.loopback) == ("chat", True, True)
    assert not _contract(PUBLIC).policy.loopback
    assert _contract(PUBLIC, ROUTE="chat").stream is False


@pytest.mark.parametrize("name", REQUIRED)
def test_a_part_is_nothing(name: str) -> None:
    """Without any one of its variables there is no contract."""
    with pytest.raises(ConfigError, match=f"{PREFIX}{name} is not set"):
        _contract(PUBLIC, **{name: None})


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", ["", " ", " x", "x\n"])
def test_an_empty_value_is_none(name: str, value: str) -> None:
    """A variable that is set to nothing, or has blanks around it, is no value."""
    with pytest.raises(ConfigError, match=name):
        _contract(PUBLIC, **{name: value})


@pytest.mark.parametrize(
    "name",
    [
        "OE_CONFORM_SMOKE_",
        "OE_CONFORM_SMOKE_ENDPOINTS",
        "OE_CONFORM_SMOKE_TIMEOUT",
        "OE_CONFORM_SMOKE_ALLOW_LOOPBAK",
        "OE_CONFORM_SMOK_ENDPOINT",
        "OE_CONFROM_SMOKE_ENDPOINT",
        "oe_conform_smoke_endpoint",
        "OE-CONFORM-SMOKE-ROUTE",
    ],
)
def test_misspelled(name: str) -> None:
    """A variable that nearly has a known name stops everything, with the contract and alone."""
    for environment in ({name: "x"}, PUBLIC | {name: "x"}):
        with pytest.raises(ConfigError, match="unknown variable"):
            given(environment)


def test_other_variables_mean_nothing() -> None:
    """Variables of other programs, and the ones that references name, are no contract."""
    others = {"PATH": "/bin", "OE_CONFORM_AUTH_X": SECRET, "OE_CONFORM_KEY_X": "k", "SMOKE": "1"}
    assert given(others) == {}
    assert given(PUBLIC | others) == given(PUBLIC)
    assert set(given(WHOLE)) <= {*REQUIRED, *OPTIONAL}


@pytest.mark.parametrize("name", ["CI", "GITHUB_ACTIONS"])
def test_never_in_ci(name: str) -> None:
    """Where a CI system says that it is one, no real call is made."""
    with pytest.raises(ConfigError, match=f"{name} is set"):
        _contract(PUBLIC | {name: "true"})


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://engine.example/",
        "https://engine.example/v1",
        "https://user:word@engine.example",
        "https://ENGINE.example",
        "http://engine.example",
        "https://localhost",
        "https://10.0.0.1",
        "https://169.254.169.254",
        "http://127.0.0.1:8080",
    ],
)
def test_endpoint(endpoint: str) -> None:
    """An endpoint that is not canonical, or not allowed, is refused; a password is not shown."""
    with pytest.raises(ConfigError) as refused:
        _contract(PUBLIC, ENDPOINT=endpoint)
    assert "word" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "allowed"),
    [
        ("http://127.0.0.1:8080", "0"),
        ("http://127.0.0.1:8080", "true"),
        ("http://127.0.0.1", "1"),
        ("http://127.0.0.2:8080", "1"),
        ("http://localhost:8080", "1"),
        ("https://engine.example", "1"),
    ],
)
def test_loopback(endpoint: str, allowed: str) -> None:
    """The opt-in is 1, for a literal loopback address with its port, and for nothing else."""
    with pytest.raises(ConfigError):
        _contract(PUBLIC, ENDPOINT=endpoint, ALLOW_LOOPBACK=allowed)


def test_loopback_of_version_6() -> None:
    """[::1] is loopback, too."""
    assert _contract(WHOLE, ENDPOINT="http://[::1]:8080").origin.loopback


def test_local_runtime_beyond_loopback() -> None:
    """A runtime that is for local use only is not called over the network."""
    with pytest.raises(ConfigError, match="local only"):
        _contract(PUBLIC, fixture_profile())


@pytest.mark.parametrize("route", ["health", "models", "nope", "chat.unary", ".stream", "Chat"])
def test_route(route: str) -> None:
    """Only an inference route of the profile is called."""
    with pytest.raises(ConfigError):
        _contract(PUBLIC, ROUTE=route)


@pytest.mark.parametrize("state", [State.CONDITIONAL, State.UNKNOWN, State.UNSUPPORTED, None])
def test_only_what_is_supported(state: State | None) -> None:
    """A stream that the profile does not call supported is not tried."""
    capabilities = dict(_remote().capabilities)
    stream = capabilities.pop("chat.stream")
    if state is not None:
        capabilities["chat.stream"] = replace(stream, state=state)
    profile = replace(_remote(), capabilities=MappingProxyType(capabilities))
    with pytest.raises(ConfigError, match="streams"):
        _contract(PUBLIC, profile)
    assert _contract(PUBLIC, profile, ROUTE="chat")


@pytest.mark.parametrize("change", [{"condition": "flag"}, {"effect": Effect.STATE_CHANGE}])
def test_no_conditional_route(change: dict[str, object]) -> None:
    """A route that is there on a condition, or changes a state, is not called."""
    routes = tuple(replace(route, **change) for route in _remote().routes)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ROUTE"):
        _contract(PUBLIC, replace(_remote(), routes=routes))


@pytest.mark.parametrize("name", ["RUNTIME_BUILD", "MODEL_REVISION", "BACKEND_BUILD"])
@pytest.mark.parametrize("value", ["latest", "main", "HEAD", "a b", "x" * 129])
def test_nothing_that_moves(name: str, value: str) -> None:
    """Builds and revisions are exact."""
    with pytest.raises(ConfigError, match=name):
        _contract(PUBLIC, **{name: value})


@pytest.mark.parametrize("digest", ["a" * 64, "sha256:" + "A" * 64, "sha256:" + "a" * 63, "md5:a"])
def test_digest(digest: str) -> None:
    """The digest is sha256 in its canonical spelling."""
    with pytest.raises(ConfigError, match="DIGEST"):
        _contract(PUBLIC, CONFIGURATION_DIGEST=digest)


def test_reference() -> None:
    """A credential is a header and a variable; the value is not read for the contract."""
    contract = _contract(PUBLIC, AUTH_ENV="OE_CONFORM_AUTH_X", AUTH_HEADER="x-api-key")
    assert contract.secret == SecretReference("x-api-key", "OE_CONFORM_AUTH_X")


@pytest.mark.parametrize(
    ("variable", "header"),
    [
        ("OE_CONFORM_AUTH_X", None),
        (None, "authorization"),
        ("OE_CONFORM_AUTH_X", "cookie"),
        ("OE_CONFORM_AUTH_X", "Authorization"),
        ("HOME", "authorization"),
        ("OE_CONFORM_AUTH_", "authorization"),
        (SECRET, "authorization"),
        ("OE_CONFORM_AUTH_X", SECRET),
    ],
)
def test_half_a_reference(variable: str | None, header: str | None) -> None:
    """Half a reference, another header, another kind of variable: refused, and never shown."""
    with pytest.raises(ConfigError) as refused:
        _contract(PUBLIC, AUTH_ENV=variable, AUTH_HEADER=header)
    assert SECRET not in str(refused.value)


def test_policy_errors_are_said_as_such() -> None:
    """A refusal by the policy can be told from other mistakes."""
    with pytest.raises(PolicyError):
        _contract(PUBLIC, ENDPOINT="https://192.168.0.1")
