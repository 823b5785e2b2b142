from __future__ import annotations

import pytest

from conformance.errors import ConfigError
from conformance.wire.target import (
    Target,
    legal_metadata,
    metadata_from,
    parse_address,
    secret_names,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:50051", "dns:///localhost:50051"),
        ("127.0.0.1:1", "dns:///127.0.0.1:1"),
        ("my_engine.svc-1:65535", "dns:///my_engine.svc-1:65535"),
        ("engine.example.org.:080", "dns:///engine.example.org.:80"),
        ("dns:///engine:5", "dns:///engine:5"),
        ("dns:engine:5", "dns:///engine:5"),
        ("ipv4:127.0.0.1:5", "dns:///127.0.0.1:5"),
        ("[::1]:5", "ipv6:[::1]:5"),
        ("ipv6:[fe80::1%eth0]:5", "ipv6:[fe80::1%eth0]:5"),
        ("dns:///[::1]:5", "ipv6:[::1]:5"),
        ("unix:/run/engine.sock", "unix:/run/engine.sock"),
        ("unix:///run/engine.sock", "unix:/run/engine.sock"),
        ("unix:engine.sock", "unix:engine.sock"),
    ],
)
def test_address_forms(text: str, address: str) -> None:
    """Every documented form becomes the gRPC target string."""
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("localhost", "no port"),
        ("localhost:", "bad port ''"),
        ("[::1]", "no port"),
        ("localhost:0", "bad port '0'"),
        ("localhost:65536", "bad port '65536'"),
        ("localhost:99999999999", "bad port"),
        ("localhost:grpc", "bad port 'grpc'"),
        ("localhost:-1", "bad port '-1'"),
        ("localhost:²", "bad port"),
        (":50051", "bad host"),
        ("a b:5", "bad host"),
        ("host/path:5", "bad host"),
        ("::1:5", "needs brackets"),
        ("http://localhost:8000", "judged by HTTP profiles"),
        ("https://localhost:8000/v1", "judged by HTTP profiles"),
        ("grpc://localhost:5", "unknown scheme 'grpc'"),
        ("xds:///engine", "unknown scheme 'xds'"),
        ("dns://8.8.8.8/engine:5", "DNS server"),
        ("dns:///engine", "no port"),
        ("unix:", "no socket file"),
        ("unix://host/x", "no socket file"),
        ("unix:/" + "x" * 107, "108 bytes"),
    ],
)
def test_wrong_addresses(text: str, says: str) -> None:
    """A wrong address is refused with what is wrong and what was expected."""
    with pytest.raises(ConfigError) as caught:
        parse_address(text)
    assert says in str(caught.value)
    assert "; expected " in str(caught.value)
    assert str(caught.value).startswith("--target: ")


@pytest.mark.parametrize("text", ["user:hunter2@host:5", "http://user:hunter2@host:5"])
def test_passwords_in_addresses_are_not_shown(text: str) -> None:
    """What stands before an @ does not reach the error."""
    with pytest.raises(ConfigError) as caught:
        parse_address(text)
    assert "hunter2" not in str(caught.value)


def test_metadata_from_options_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values come from options and from variables; binary keys take base64."""
    monkeypatch.setenv("ENGINE_TOKEN", "Bearer s3cret=")
    metadata = metadata_from(["x-a=1", "x-a=a=b", "x-bin=AAE="], ["authorization=ENGINE_TOKEN"])
    assert metadata == (
        ("x-a", "1"),
        ("x-a", "a=b"),
        ("x-bin", b"\x00\x01"),
        ("authorization", "Bearer s3cret="),
    )
    assert secret_names(["authorization=ENGINE_TOKEN"]) == {"authorization": "ENGINE_TOKEN"}
    assert "s3cret" not in repr(Target("dns:///a:1", metadata=metadata))


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("nonsense", "key and a value"),
        ("=v", "key and a value"),
        ("X-Key=v", "'x-key'"),
        ("a key=v", "not legal"),
        (":path=v", "not legal"),
        ("grpc-timeout=1S", "reserved"),
        ("content-type=text/plain", "reserved"),
        ("x-a=sésame", "printable ASCII"),
        ("x-bin=sesame!", "base64"),
    ],
)
def test_wrong_metadata(option: str, says: str) -> None:
    """Metadata that gRPC cannot carry is refused without showing the value."""
    with pytest.raises(ConfigError) as caught:
        metadata_from([option], [])
    assert says in str(caught.value)
    value = option.partition("=")[2]
    assert len(value) < 3 or value not in str(caught.value)
    assert "nonsense" not in str(caught.value)


def test_missing_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is not set is named."""
    monkeypatch.delenv("ENGINE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="authorization: environment variable 'ENGINE_TOKEN'"):
        metadata_from([], ["authorization=ENGINE_TOKEN"])


def test_bad_value_in_variable_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret with a line end is refused and stays secret."""
    monkeypatch.setenv("ENGINE_TOKEN", "s3cret\n")
    with pytest.raises(ConfigError) as caught:
        metadata_from([], ["authorization=ENGINE_TOKEN"])
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("pair", "legal"),
    [
        (("a-b_c.9", "x y~"), True),
        (("a-bin", b"\x00\xff"), True),
        (("Upper", "x"), False),
        ((":path", "x"), False),
        (("", "x"), False),
        (("a", "é"), False),
        (("a", "x\n"), False),
    ],
)
def test_legal_metadata(pair: tuple[str, str | bytes], legal: bool) -> None:
    """The rule is gRPC's own: lower-case keys, printable ASCII values unless binary."""
    assert legal_metadata((pair,)) is legal
