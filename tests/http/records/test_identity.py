from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import ConfigError
from conformance.http.origin import Origin
from conformance.records.evidence import Field, Source, configured, observed
from conformance.records.identity import IDENTITY, IdentityKey, key_from, run_key

VALUE = "a-secret-key-of-thirty-two-bytes!"
KEY = key_from({"K": VALUE}, "K")


def test_equal_texts_equal_names() -> None:
    """One key gives one text one name, and another text another."""
    assert KEY.response(b"x") == KEY.response(b"x") != KEY.response(b"y")
    assert IDENTITY.match(KEY.response(b"x"))


def test_keys_separate() -> None:
    """Another key gives other names, and has another id."""
    other = key_from({"K": VALUE[::-1]}, "K")
    assert other.response(b"x") != KEY.response(b"x")
    assert other.id != KEY.id
    assert run_key().id != run_key().id


def test_domains_separate() -> None:
    """The same bytes as request, response and endpoint have three names; none is a plain hash."""
    origin = Origin("https", "engine.example", 443)
    names = {KEY.request("", "", b""), KEY.response(b""), KEY.endpoint(origin, "", "")}
    assert len(names) == 3
    assert not any(hashlib.sha256(b"").hexdigest() in name for name in names)


@given(st.text(max_size=8), st.text(max_size=8), st.binary(max_size=8), st.integers(0, 8))
def test_parts_do_not_run_together(method: str, path: str, body: bytes, cut: int) -> None:
    """Moving bytes from one part to the next changes the name."""
    moved = (method + path[:cut], path[cut:])
    assert (KEY.request(method, path, body) == KEY.request(*moved, body)) == (
        moved == (method, path)
    )


def test_the_key_is_not_shown() -> None:
    """Neither the key's representation nor its id holds the secret."""
    assert VALUE not in repr(KEY)
    assert KEY.id not in VALUE
    assert "secret" not in repr(IdentityKey("0" * 16, b"secret"))


@pytest.mark.parametrize("value", [None, "", "short", "x" * 31, "x" * 1025])
def test_no_key(value: str | None) -> None:
    """A key that is missing, guessable or no key at all is refused, unshown."""
    with pytest.raises(ConfigError) as refused:
        key_from({} if value is None else {"K": value}, "K")
    assert not value or value not in str(refused.value)


STATED = configured({"model_id": "m", "runtime_build": "1"})


def test_only_what_was_seen_is_reported() -> None:
    """A field becomes the provider's when it said the same; no other field changes."""
    seen = observed(STATED, {"model_id": "m", "backend": "new"})
    assert dict(seen) == {
        "model_id": Field("m", Source.PROVIDER),
        "runtime_build": Field("1", Source.OPERATOR),
    }


def test_a_contradiction_stays() -> None:
    """What the provider contradicts stays the operator's word, marked, whatever comes later."""
    seen = observed(STATED, {"model_id": "other"})
    assert seen["model_id"] == Field("m", Source.OPERATOR, contradicted=True)
    assert observed(seen, {"model_id": "m"})["model_id"].contradicted


def test_nothing_seen_changes_nothing() -> None:
    """A probe without an observation upgrades nothing."""
    assert observed(STATED, {}) == STATED
