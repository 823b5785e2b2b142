"""Names for texts that say nothing about them: keyed hashes, a domain for each kind of text.

A plain hash of a short prompt can be guessed; a keyed one only by who has the key. Equal texts have
equal names under one key, so repeated answers can be compared without being kept.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.errors import ConfigError
from conformance.http.origin import Origin

KEY_BYTES = 32
_MOST_KEY_BYTES = 1024
_DOMAIN = b"oe-conform/call-record/v1/"
_PREFIX = "hmac-sha256:"
IDENTITY = re.compile(r"^hmac-sha256:[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class IdentityKey:
    """id: stored with every record, tells keys apart and nothing else. secret: never stored."""

    id: str
    secret: bytes = field(repr=False)

    def request(self, method: str, path: str, body: bytes) -> str:
        """Name of what was asked."""
        return self._name("request", method.encode(), path.encode(), body)

    def response(self, body: bytes) -> str:
        """Name of what was answered, bytes of the body as they came."""
        return self._name("response", body)

    def endpoint(self, origin: Origin, profile: str, digest: str) -> str:
        """Name of a place together with the profile that it was called by."""
        parts = (origin.text.encode(), profile.encode(), digest.encode())
        return self._name("endpoint", *parts)

    def _name(self, domain: str, *parts: bytes) -> str:
        return _PREFIX + _keyed(self.secret, domain, *parts).hex()


def key_from(environment: Mapping[str, str], variable: str) -> IdentityKey:
    """The key that an environment variable holds. Raises ConfigError, which never shows it."""
    value = environment.get(variable, "").encode()
    if not KEY_BYTES <= len(value) <= _MOST_KEY_BYTES:
        raise ConfigError(
            f"environment variable {variable} holds no key",
            expected=f"{KEY_BYTES} to {_MOST_KEY_BYTES} bytes of secret text",
        )
    return _with_id(value)


def run_key() -> IdentityKey:
    """A key for this run alone: its names can be compared with each other only."""
    return _with_id(secrets.token_bytes(KEY_BYTES))


def _with_id(secret: bytes) -> IdentityKey:
    return IdentityKey(_keyed(secret, "key-id").hex()[:16], secret)


def _keyed(secret: bytes, domain: str, *parts: bytes) -> bytes:
    # Each part with its length before it: no two lists of parts give one message.
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.digest(secret, _DOMAIN + domain.encode() + b"\0" + message, hashlib.sha256)
