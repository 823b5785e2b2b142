"""Runtime profiles and contracts as data: what is shipped loads, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import ConfigError
from conformance.model.registry import Registry, default_registry
from conformance.mutants.http.fixture import fixture_profile
from conformance.runtimes.contracts import http_registry, load_contracts
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.identity import at_pointer
from conformance.runtimes.profile import Effect, State
from conformance.runtimes.registry import load_runtime, runtime_profile, runtime_profiles

CONTRACT = """
[contract]
name = "tiny"
major = 1
minor = 0
stage = "draft"
summary = "A contract of one row."
id_prefixes = ["OE-HTTP-TINY"]

[[requirement]]
id = "OE-HTTP-TINY-001"
level = "MUST"
text = "Something holds."
sources = ["D", "https://example.org/1"]
capability = "tiny.works"
"""

COMMON = CONTRACT.replace("tiny.works", "common.works").replace('"tiny"', '"http-common"')
COMMON = COMMON.replace("HTTP-TINY", "HTTP-COMMON")

RUNTIME = """
[runtime]
name = "toy"
build = "1.2.3"
title = "Toy 1.2.3"
tier = "experimental"
locality = ["local"]
summary = "A toy."
envelope = "openai"
sources = ["https://example.org/toy"]

[[identity]]
route = "version"
pointer = "/version"
pattern = "^1"

[[route]]
name = "version"
method = "GET"
path = "/version"
effect = "non-mutating"

[[route]]
name = "work"
method = "POST"
path = "/work"
effect = "inference"
contract = "tiny"
stream = "sse"
terminator = { kind = "sse-data", values = ["[DONE]"] }
usage = { where = "absent", when = "never" }

[[capability]]
name = "tiny.works"
state = "supported"
evidence = "seen"

[[capability]]
name = "common.works"
state = "conditional"
condition = "with-flag"
when = "started with a flag"
evidence = "seen"

[[deviation]]
requirement = "OE-HTTP-TINY-001"
reason = "It does not."
actual = "# things"
link = "https://example.org/bug"

[[stream_error]]
route = "work"
fields = { prompt = "break" }
condition = "brittle"
evidence = "seen"
"""


@pytest.fixture(name="contracts")
def fixture_contracts(tmp_path: Path) -> Registry:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "tiny-1.0.toml").write_text(CONTRACT)
    (folder / "http-common-1.0.toml").write_text(COMMON)
    return load_contracts([folder])


def test_what_is_shipped_loads() -> None:
    """Every shipped profile is in the file of its name and says something of each capability that
    its contracts name; ids of contracts are no ids of the gRPC profiles.
    """
    assert "llama-cpp@b10229" in runtime_profiles()
    for profile in (*runtime_profiles().values(), fixture_profile()):
        assert profile.contracts <= {contract.name for contract in http_registry().profiles}
        assert len(profile.digest) == 64
    assert not set(http_registry().by_id) & set(default_registry().by_id)


def test_a_profile_is_read(tmp_path: Path, contracts: Registry) -> None:
    """All of it, with a digest of the bytes."""
    file = tmp_path / "toy@1.2.3.toml"
    file.write_text(RUNTIME)
    profile = load_runtime(file, contracts)
    assert profile.id == "toy@1.2.3"
    assert profile.contracts == {"http-common", "tiny"}
    assert profile.conditions == {"with-flag", "brittle"}
    assert [each.fields for each in profile.stream_errors] == [{"prompt": "break"}]
    assert profile.route("work").effect is Effect.INFERENCE
    assert profile.capability("common.works").state is State.CONDITIONAL
    file.write_text(RUNTIME + "\n")
    assert load_runtime(file, contracts).digest != profile.digest


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('build = "1.2.3"', 'build = "latest"', "never `latest`"),
        ('build = "1.2.3"', 'build = "v1-latest"', "never `latest`"),
        ('build = "1.2.3"', 'build = "stable"', "never `latest`"),
        ('build = "1.2.3"', 'build = "1.2.4"', "toy@1.2.4.toml"),
        ('tier = "experimental"', 'tier = "best"', "production-candidate"),
        ('summary = "A toy."', 'summary = "A toy."\nhost = "x"', "host"),
        ('envelope = "openai"\n', "", "envelope"),
        ('sources = ["https://example.org/toy"]', "sources = []", "sources"),
        ('path = "/work"', 'path = "work"', "absolute path"),
        ('effect = "inference"', 'effect = "state-change"', "changes state"),
        ('effect = "inference"', 'effect = "reading"', "non-mutating"),
        ('contract = "tiny"', 'contract = "tinny"', "perhaps tiny"),
        ('name = "work"', 'name = "version"', "'version' is given twice"),
        ('usage = { where = "absent", when = "never" }\n', "", "terminator and usage"),
        ('name = "tiny.works"', 'name = "tiny.plays"', "'tiny.works'"),
        ('evidence = "seen"\n\n[[capability]]', "\n[[capability]]", "evidence"),
        ('condition = "with-flag"\n', "", "condition"),
        ('state = "supported"', 'state = "supported"\nwhen = "always"', "only a conditional"),
        ('state = "supported"', 'state = "maybe"', "supported, conditional"),
        ('"OE-HTTP-TINY-001"', '"OE-HTTP-TINY-002"', "OE-HTTP-TINY-001"),
        ('actual = "# things"\n', "", "actual"),
        ('link = "https://example.org/bug"', 'link = "bug 5"', "https link"),
        ('route = "version"', 'route = "work"', "non-mutating"),
        ('pointer = "/version"', 'pointer = "version"', "JSON pointer"),
        ('route = "work"\nfields', 'route = "version"\nfields', "streaming route"),
        ('route = "work"\nfields', 'route = "wrok"\nfields', "perhaps work"),
        ('{ prompt = "break" }', "{}", "fields"),
        ('{ prompt = "break" }', "{ stream = false }", "sets 'stream'"),
        ('condition = "brittle"\nevidence = "seen"\n', "", "evidence"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, contracts: Registry, old: str, new: str, said: str
) -> None:
    """The error names the file and the place, and says what was expected."""
    assert old in RUNTIME
    file = tmp_path / "toy@1.2.3.toml"
    file.write_text(RUNTIME.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_runtime(file, contracts)
    assert said in str(caught.value)
    assert "toy@1.2.3.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("OE-HTTP-TINY-001", "OE-HTTP-TINY-1", "three digits"),
        ("OE-HTTP-TINY-001", "OE-HTTP-OTHER-001", "OE-HTTP-TINY-nnn"),
        ('level = "MUST"', 'level = "must"', "MUST, SHOULD"),
        ('sources = ["D", "https://example.org/1"]', 'sources = ["X"]', "A OpenAI API"),
        ('capability = "tiny.works"', 'capability = "works"', "capability"),
        ('text = "Something holds."', "", "text"),
    ],
)
def test_a_wrong_contract_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    """As for profiles."""
    assert old in CONTRACT
    (tmp_path / "tiny-1.0.toml").write_text(CONTRACT.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_contracts([tmp_path])
    assert said in str(caught.value)


def test_one_id_is_given_once(tmp_path: Path) -> None:
    """Ids are unique over all contracts."""
    (tmp_path / "a.toml").write_text(CONTRACT)
    (tmp_path / "b.toml").write_text(CONTRACT)
    with pytest.raises(ConfigError, match="given twice"):
        load_contracts([tmp_path])


@pytest.mark.parametrize("name", ["runtimes/llama-cpp", "runtimes/llama-cpp@latest", "llama"])
def test_a_build_has_to_be_named(name: str) -> None:
    """Another build is another server: nothing is guessed."""
    with pytest.raises(ConfigError, match="unknown runtime profile"):
        runtime_profile(name)


def test_what_may_be_used() -> None:
    """Only what is supported, or conditional and stated."""
    declared = HttpDeclared(runtime_profiles()["llama-cpp@b10229"])
    assert declared.has("chat.stream")
    assert not declared.has("chat.n")
    assert not declared.has("chat.telepathy")
    stated = HttpDeclared(declared.runtime, conditions=frozenset({"parallel-2"}))
    assert stated.has("chat.n")


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a/0/b", 1), ("/a/1", None), ("/x", None), ("/a~1b", 2), ("/a/0/b/c", None)],
)
def test_pointers(pointer: str, value: object) -> None:
    """JSON pointers find what is there and nothing else."""
    assert at_pointer({"a": [{"b": 1}], "a/b": 2}, pointer) == value
