"""What an operator has to say before one real call is made: all of it, exactly, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from conformance.errors import ConfigError, unknown_name
from conformance.http.origin import Origin, parse_origin
from conformance.http.policy import SECRET_HEADERS, Policy, SecretReference
from conformance.records.ask import Body, body_for
from conformance.runtimes.profile import Effect, Framing, Route, RuntimeProfile, State

PREFIX = "OE_CONFORM_SMOKE_"
REQUIRED = (
    *("ENDPOINT", "RUNTIME", "RUNTIME_BUILD", "ROUTE", "MODEL_ID", "MODEL_REVISION"),
    *("BACKEND_NAME", "BACKEND_BUILD", "CONFIGURATION_DIGEST"),
)
OPTIONAL = ("AUTH_ENV", "AUTH_HEADER", "ALLOW_LOOPBACK", "IDENTITY_ENV")
# Where a call costs somebody's money and nobody looks.
_CI = ("CI", "GITHUB_ACTIONS")
_KNOWN = frozenset(PREFIX + name for name in (*REQUIRED, *OPTIONAL))
_STREAM = ".stream"
_DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
_NAME = re.compile(r"^[A-Za-z0-9./][A-Za-z0-9._:/@+-]{0,127}$")
_MOVING = frozenset({"latest", "main", "master", "head", "nightly", "stable", "dev", "default"})
# References name variables that were made for this, so a typo reads no other credential.
_AUTH = re.compile(r"^OE_CONFORM_AUTH_[A-Z0-9_]{1,64}$")
_KEY = re.compile(r"^OE_CONFORM_KEY_[A-Z0-9_]{1,64}$")


@dataclass(frozen=True, slots=True)
class SmokeContract:
    """Everything about the one call. stream: whether it asks for a stream. body: makes the
    request's body. secret, key: references; None = no credential, a key for this run alone.
    """

    origin: Origin
    profile: RuntimeProfile
    route: Route
    stream: bool
    body: Body
    model_id: str
    model_revision: str
    backend_name: str
    backend_build: str
    configuration_digest: str
    policy: Policy
    secret: SecretReference | None
    key: str | None


def given(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of the contract, without their prefix; empty when there are none.

    Raises ConfigError for one that is nearly such a variable: what was meant is not known then.
    """
    for name in sorted(environment):
        if name in _KNOWN or not name.upper().startswith("OE"):
            continue
        plain = name.upper().replace("-", "_")
        near = get_close_matches(plain, _KNOWN, n=1, cutoff=0.9)
        if plain.startswith(PREFIX) or near:
            raise unknown_name("variable", name, _KNOWN)
    return {
        name.removeprefix(PREFIX): value for name, value in environment.items() if name in _KNOWN
    }


def smoke_contract(
    environment: Mapping[str, str], profile_of: Callable[[str], RuntimeProfile]
) -> SmokeContract:
    """The contract in the environment. Nothing is contacted; no credential is read.

    profile_of: the profile of `runtimes/<name>@<build>`. Raises ConfigError for whatever is
    missing, misspelled, unknown, or not exactly one thing.
    """
    for name in _CI:
        if environment.get(name):
            raise ConfigError(f"{name} is set: no real call is made in CI", expected="an operator")
    values = given(environment)
    for name in REQUIRED:
        if name not in values:
            raise ConfigError(f"{PREFIX}{name} is not set", expected="the whole contract, or none")
    for name, value in values.items():
        if not value or value != value.strip():
            raise _bad(name, "is empty or has blanks around it", "an exact value")
    profile = profile_of(f"runtimes/{_named(values, 'RUNTIME')}@{_fixed(values, 'RUNTIME_BUILD')}")
    origin, policy = _place(values, profile)
    route, stream, body = _route(values["ROUTE"], profile)
    if not _DIGEST.match(values["CONFIGURATION_DIGEST"]):
        raise _bad("CONFIGURATION_DIGEST", "is no digest", "sha256: and 64 lower-case hex digits")
    return SmokeContract(
        origin,
        profile,
        route,
        stream,
        body,
        model_id=_named(values, "MODEL_ID"),
        model_revision=_fixed(values, "MODEL_REVISION"),
        backend_name=_named(values, "BACKEND_NAME"),
        backend_build=_fixed(values, "BACKEND_BUILD"),
        configuration_digest=values["CONFIGURATION_DIGEST"],
        policy=policy,
        secret=_secret(values),
        key=_reference(values, "IDENTITY_ENV", _KEY),
    )


def _place(values: Mapping[str, str], profile: RuntimeProfile) -> tuple[Origin, Policy]:
    try:
        origin = parse_origin(values["ENDPOINT"])
    except ConfigError as error:
        # The text may hold a credential, so it is not shown.
        raise _bad("ENDPOINT", "is no canonical origin", error.expected) from None
    allowed = values.get("ALLOW_LOOPBACK")
    if allowed not in {None, "1"}:
        raise _bad("ALLOW_LOOPBACK", "has another value than 1", "1, or no such variable")
    if allowed and not origin.loopback:
        raise _bad("ALLOW_LOOPBACK", "is for a literal loopback origin", "no such variable")
    if origin.loopback and not values["ENDPOINT"].endswith(f":{origin.port}"):
        raise _bad("ENDPOINT", "has no port", "http://127.0.0.1:port or http://[::1]:port")
    policy = Policy(loopback=allowed == "1")
    policy.admit(origin)
    if not origin.loopback and "remote" not in profile.locality:
        raise _bad("ENDPOINT", f"is remote, and {profile.id} is local only", "a loopback origin")
    return origin, policy


def _route(name: str, profile: RuntimeProfile) -> tuple[Route, bool, Body]:
    stream = name.endswith(_STREAM)
    route = profile.route(name.removesuffix(_STREAM))
    body = body_for(route)
    if route.effect is not Effect.INFERENCE or body is None:
        raise _bad("ROUTE", f"is {route.name}, which no call of this kind is for", "an inference")
    if route.condition:
        raise _bad("ROUTE", f"is {route.name}, which is there on a condition", "a supported route")
    framing = route.stream if stream else route.unary
    if framing is Framing.NONE:
        raise _bad("ROUTE", f"is {name}, a framing that {profile.id} does not have", "another")
    if stream:
        _supported(profile, route)
    return route, stream, body


def _supported(profile: RuntimeProfile, route: Route) -> None:
    """Streaming has to be a claim of the profile. Raises ConfigError."""
    first, _, last = route.contract.partition("-")
    names = dict.fromkeys(f"{kind}{_STREAM}" for kind in (last, route.name, first))
    found = next((profile.capabilities[n] for n in names if n in profile.capabilities), None)
    state = State.UNKNOWN if found is None else found.state
    if state is not State.SUPPORTED:
        raise _bad("ROUTE", f"streams, and {profile.id} calls that {state}", "a supported route")


def _secret(values: Mapping[str, str]) -> SecretReference | None:
    if ("AUTH_ENV" in values) != ("AUTH_HEADER" in values):
        raise ConfigError(f"{PREFIX}AUTH_ENV and {PREFIX}AUTH_HEADER", expected="both or neither")
    variable = _reference(values, "AUTH_ENV", _AUTH)
    if variable is None:
        return None
    if values["AUTH_HEADER"] not in SECRET_HEADERS:
        raise _bad("AUTH_HEADER", "is no such header", " or ".join(SECRET_HEADERS))
    return SecretReference(values["AUTH_HEADER"], variable)


def _reference(values: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str | None:
    if name not in values:
        return None
    if not pattern.match(values[name]):
        # Not shown: somebody may have put the secret itself there.
        stem = pattern.pattern.removeprefix("^").partition("[")[0]
        raise _bad(name, "is no reference", f"the name of a variable {stem}...")
    return values[name]


def _named(values: Mapping[str, str], name: str) -> str:
    if not _NAME.match(values[name]):
        raise _bad(name, "is no name", "letters, digits and ._:/@+-, 128 at most")
    return values[name]


def _fixed(values: Mapping[str, str], name: str) -> str:
    value = _named(values, name)
    if value.lower() in _MOVING:
        raise _bad(name, f"is {value!r}, which moves", "one exact build or revision")
    return value


def _bad(name: str, problem: str, expected: str) -> ConfigError:
    return ConfigError(f"{PREFIX}{name} {problem}", expected=expected)
