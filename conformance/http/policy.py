"""What may be reached, and with which credentials: nothing that was not allowed on purpose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import ConfigError
from conformance.http.addresses import Address, refusal
from conformance.http.exchange import Headers
from conformance.http.origin import Origin
from conformance.http.target import Secrets

# The only headers whose values are credentials here.
SECRET_HEADERS = ("authorization", "x-api-key")
SECRET_BYTES = 8 * 1024
# Names that are looked up near by, if at all; each last label, or all of them.
_NEAR = ("localhost", "local", "internal", "lan", "home.arpa", "onion")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")
# What a field value may consist of (RFC 9110, 5.5), without obs-text.
_VALUE = re.compile(r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$")


class PolicyError(ConfigError):
    """The policy forbids what was asked for; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Policy:
    """loopback: whether the operator said that a literal loopback address is meant."""

    loopback: bool = False

    def admit(self, origin: Origin) -> None:
        """Let an origin pass as far as its spelling tells. Raises PolicyError."""
        address = origin.address
        if origin.loopback:
            if not self.loopback:
                raise _refused(origin, "loopback without an explicit opt-in")
            return
        if origin.scheme != "https":
            raise _refused(origin, f"{origin.scheme} beyond loopback", expected="https")
        if address is None:
            self._admit_name(origin)
        else:
            self.vet(origin, [address])

    def vet(self, origin: Origin, addresses: list[Address]) -> None:
        """Let what the origin's name stands for pass: every address or none. Raises PolicyError."""
        if origin.loopback and self.loopback and [str(each) for each in addresses] == [origin.host]:
            return
        for address in addresses:
            reason = refusal(address)
            if reason:
                raise _refused(origin, f"an address that is not public ({reason})")

    @staticmethod
    def _admit_name(origin: Origin) -> None:
        host = origin.host
        if "." not in host:
            raise _refused(origin, "a name without a domain", expected="a public name")
        if any(host == name or host.endswith(f".{name}") for name in _NEAR):
            raise _refused(origin, "a name that is not public", expected="a public name")


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A credential by the name of the environment variable that holds the whole header value."""

    header: str
    variable: str

    def __post_init__(self) -> None:
        if self.header not in SECRET_HEADERS:
            # Not shown: a bare secret may stand in the place of the name.
            raise ConfigError("a header that holds no credential", expected=_either(SECRET_HEADERS))
        if not _VARIABLE.match(self.variable):
            raise ConfigError(
                f"the reference for {self.header} is no variable",
                expected="the name of an environment variable",
            )

    def read(self, environment: Mapping[str, str]) -> str:
        """The value, as it is now. Raises ConfigError, which never shows it."""
        if self.variable not in environment:
            raise ConfigError(f"environment variable {self.variable} is not set")
        value = environment[self.variable]
        if len(value) > SECRET_BYTES or not _VALUE.match(value):
            raise ConfigError(
                f"environment variable {self.variable} holds no header value",
                expected=f"1 to {SECRET_BYTES} visible ASCII characters",
            )
        return value


def secrets_from(
    references: tuple[SecretReference, ...], environment: Mapping[str, str]
) -> Secrets:
    """A target's credentials: read anew at each dispatch, and kept nowhere."""

    def secrets() -> Headers:
        return tuple((each.header, each.read(environment)) for each in references)

    return secrets


def _refused(origin: Origin, what: str, *, expected: str = "") -> PolicyError:
    return PolicyError(f"{origin.text} is refused: {what}", expected=expected)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(names)
