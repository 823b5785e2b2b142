"""Loading profiles: lookups of the shipped ones, and one clear error for each kind of bad file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from conformance.data import data_dir
from conformance.errors import ConfigError
from conformance.model.profile import Absent, Zero
from conformance.model.registry import default_registry, load_registry
from conformance.model.requirement import Level, Need

CORE = """
[profile]
name = "core"
major = 1
minor = 0
stage = "candidate"
summary = "A small core."
roles = ["aggregated"]
capability = "core"
health_services = ["", "openengine.v1.Inference"]
prerequisites = []
features = ["request.media", "request.lora"]
incompatible = [["request.media", "request.lora"]]
id_prefixes = ["OE-CORE"]
messages = ["GenerateRequest"]

[[service]]
name = "openengine.v1.Inference"
rpcs = [{ name = "Generate" }]

[[capability]]
path = "core.max_stop_conditions"
scope = "engine"
type = "uint32"
absent = "unreported"
fallback = 4
zero = "invalid"
min = 1
text = "Most stop conditions."

[[requirement]]
id = "OE-CORE-GEN-001"
level = "MUST"
text = "Something holds."
sources = ["U", "D"]
applies = "generates"
needs = ["exclusive"]
legacy = true
tolerates = "something else"
"""

ADMIN = """
[profile]
name = "admin"
major = 1
minor = 0
stage = "draft"
summary = "A small admin."
roles = ["aggregated"]
capability = "admin"
health_services = ["openengine.v1.OpenEngineAdmin"]
prerequisites = [{ profile = "core", major = 1, minor = 0 }]
id_prefixes = ["OE-ADM"]
messages = []

[[service]]
name = "openengine.v1.OpenEngineAdmin"
rpcs = [
    { name = "GetAdminState" },
    { name = "Drain", required = false, when = "'drain' in capabilities.admin.operations" },
]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two good profiles."""
    (tmp_path / "core-1.0.toml").write_text(CORE, "utf-8")
    (tmp_path / "admin-1.0.toml").write_text(ADMIN, "utf-8")
    return tmp_path


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text("utf-8")
    assert text.count(old) >= 1
    (folder / file).write_text(text.replace(old, new, 1), "utf-8")


def test_a_good_folder_loads(folder: Path) -> None:
    """Every key of a file arrives in the model, prerequisites first."""
    registry = load_registry(folder)
    assert registry.profile_names == ("core", "admin")
    core = registry.profile("core")
    assert (core.title, core.version, core.capability) == ("core 1.0", "1.0", "core")
    assert core.digest == hashlib.sha256((folder / "core-1.0.toml").read_bytes()).hexdigest()
    assert core.incompatible == (("request.media", "request.lora"),)
    field = registry.capability("core.max_stop_conditions")
    assert (field.absent, field.fallback, field.zero) == (Absent.UNREPORTED, 4, Zero.INVALID)
    assert field.reference == "capabilities.core.max_stop_conditions"
    row = registry.requirement("OE-CORE-GEN-001")
    assert (row.level, row.sources, row.profile) == (Level.MUST, ("U", "D"), "core")
    assert (row.applies.source, row.needs) == ("generates", frozenset({Need.EXCLUSIVE}))
    assert (row.legacy, row.tolerates, row.group) == (True, "something else", "OE-CORE-GEN")
    assert registry.requirements("core") == (row,)
    methods = dict(registry.profile("admin").methods())
    assert methods["openengine.v1.OpenEngineAdmin/GetAdminState"].required
    assert not methods["openengine.v1.OpenEngineAdmin/Drain"].required


def test_the_digest_follows_every_byte(folder: Path) -> None:
    """A report that names the digest pins the exact file."""
    before = load_registry(folder).profile("core").digest
    change(folder, "core-1.0.toml", "A small core.", "A smaller core.")
    assert load_registry(folder).profile("core").digest != before


def test_the_highest_version_answers_for_a_name(folder: Path) -> None:
    """Two minors of a profile live side by side; lookups by name take the newer."""
    newer = CORE.replace("minor = 0", "minor = 1").replace("GEN-001", "GEN-002")
    (folder / "core-1.1.toml").write_text(newer, "utf-8")
    registry = load_registry(folder)
    assert registry.profile("core").version == "1.1"
    assert registry.profile_names == ("core", "admin")
    assert len(registry.requirements()) == 2


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ('name = "core"', "name = ", "core-1.0.toml", "cannot be read"),
        ("major = 1", "major = 0", "profile.major", "0 is less than the minimum of 1"),
        ("minor = 0", 'minor = "0"', "profile.minor", "is not of type 'integer'"),
        ('stage = "candidate"\n', "", "profile", "'stage' is a required property"),
        ('"candidate"', '"beta"', "profile.stage", "one of draft, candidate"),
        ('"candidate"', '"candidate"\nnote = "x"', "profile", "only name, major"),
        ('roles = ["aggregated"]', 'roles = ["router"]', "profile.roles", "'router'"),
        ("[[service]]", "[other]\nx = 1\n[[service]]", "top level", "'other' was unexpected"),
        ("absent", "default", "capability[core.max_stop_conditions]", "default"),
        ('zero = "invalid"', 'zero = "none"', "capability[core.max_stop_conditions]", "unlimited"),
        ('level = "MUST"', 'level = "must"', "requirement[OE-CORE-GEN-001].level", "SHOULD, MAY"),
        ('sources = ["U", "D"]', 'sources = ["Z"]', "requirement[OE-CORE-GEN-001].sources", "'Z'"),
        ('needs = ["exclusive"]', 'needs = ["gpu"]', "requirement[OE-CORE-GEN-001]", "'gpu'"),
        ("OE-CORE-GEN-001", "OE-CORE-GEN-1", "requirement[OE-CORE-GEN-1].id", "three digits"),
        ("OE-CORE-GEN-001", "OE-ADM-001", "requirement OE-ADM-001", "starts with OE-CORE"),
        ("legacy = true", "legacy = false", "OE-CORE-GEN-001, tolerates", "legacy = true"),
        ('"generates"', '"generate"', "requirement OE-CORE-GEN-001, applies", "generates"),
        ('"generates"', '"generates ="', "requirement OE-CORE-GEN-001, applies", "cannot parse"),
        ('"generates"', "\"'x' in profiles\"", "requirement OE-CORE-GEN-001", "admin"),
        ("max_stop_conditions", "max_stops", "capability core.max_stops", "max_stop_conditions"),
        ('type = "uint32"', 'type = "bool"', "core.max_stop_conditions", "'uint32' as on the wire"),
        (
            'absent = "unreported"',
            "default = false",
            "capability core.max_stop_conditions",
            "a value of type uint32",
        ),
        ('text = "Most', 'relation = "core < 2"\ntext = "Most', "relation", "unknown name 'core'"),
        ('text = "Most', 'features = ["a.b"]\ntext = "Most', "core-1.0.toml", "token 'a.b'"),
        ('["request.media", "request.lora"]]', '["request.media"]]', "incompatible", "minItems"),
        ('[["request.media"', '[["request.medium"', "core-1.0.toml", "perhaps request.media"),
        ('capability = "core"', 'capability = "kore"', "capability", "unknown field"),
        ('capability = "core"', 'capability = "model"', "capability", "model is string"),
        ('"GenerateRequest"', '"GenRequest"', "messages", "unknown message 'GenRequest'"),
        ('.Inference"]', '.Inferences"]', "health_services", "Inferences"),
        (
            'name = "openengine.v1.Inference"',
            'name = "openengine.v1.Inf"',
            "v1.Inf",
            "unknown serv",
        ),
        ('"Generate" }', '"Generates" }', "service openengine.v1.Inference", "perhaps Generate"),
        (
            '"Generate" }',
            '"Generate", alias_of = "openengine.v1.Control/Gen" }',
            "rpc Generate, alias_of",
            "unknown RPC",
        ),
        (
            "prerequisites = []",
            'prerequisites = [{ profile = "admn", major = 1, minor = 0 }]',
            "core-1.0.toml",
            "perhaps admin",
        ),
        (
            "prerequisites = []",
            'prerequisites = [{ profile = "admin", major = 1, minor = 2 }]',
            "prerequisites",
            "no file has admin 1.2",
        ),
        (
            "prerequisites = []",
            'prerequisites = [{ profile = "admin", major = 1, minor = 0 }]',
            "prerequisites",
            "a cycle among admin, core",
        ),
    ],
)
def test_a_bad_value_is_named(folder: Path, old: str, new: str, where: str, said: str) -> None:
    """The error names the file, the key and what was expected, in one line."""
    change(folder, "core-1.0.toml", old, new)
    with pytest.raises(ConfigError) as caught:
        load_registry(folder)
    message = str(caught.value)
    assert where in message
    assert said in message
    assert ".toml" in message
    assert "\n" not in message
    assert caught.value.expected


def test_an_id_used_twice_names_both_files(folder: Path) -> None:
    """Ids are unique over all profiles."""
    newer = CORE.replace("minor = 0", "minor = 1", 1)
    (folder / "core-1.1.toml").write_text(newer, "utf-8")
    with pytest.raises(ConfigError, match=r"core-1.1.toml.*OE-CORE-GEN-001.*core-1.0.toml"):
        load_registry(folder)


def test_a_version_given_twice_names_both_files(folder: Path) -> None:
    """One file per profile version."""
    (folder / "other.toml").write_text(CORE.replace("GEN-001", "GEN-002"), "utf-8")
    with pytest.raises(ConfigError, match=r"other.toml.*core 1.0 is also in core-1.0.toml"):
        load_registry(folder)


def test_a_capability_given_twice_is_refused(folder: Path) -> None:
    """One description per field."""
    table = CORE[CORE.index("[[capability]]") : CORE.index("[[requirement]]")]
    change(folder, "core-1.0.toml", "[[requirement]]", f"{table}\n[[requirement]]")
    with pytest.raises(ConfigError, match=r"core.max_stop_conditions: is given twice"):
        load_registry(folder)


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    """A file in another encoding is a ConfigError, not a traceback."""
    (folder / "core-1.0.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"core-1.0.toml: cannot be read"):
        load_registry(folder)


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    """Nothing to load is an error, not an empty registry that judges nothing."""
    with pytest.raises(ConfigError, match="no profile files"):
        load_registry(tmp_path)
    with pytest.raises(ConfigError, match="not a directory"):
        load_registry(tmp_path / "absent")


def test_unknown_names_get_near_matches() -> None:
    """Lookups of the shipped registry answer a slip with what was meant."""
    registry = default_registry()
    with pytest.raises(ConfigError, match=r"requirement 'OE-CORE-GEN-0011'.*OE-CORE-GEN-001"):
        registry.requirement("OE-CORE-GEN-0011")
    with pytest.raises(ConfigError, match="perhaps kv_events"):
        registry.profile("kv_event")
    with pytest.raises(ConfigError, match="unknown profile"):
        registry.requirements("nothing")
    with pytest.raises(ConfigError, match=r"perhaps core\.max_request_bytes"):
        registry.capability("core.max_request_byte")


def test_the_shipped_profiles_are_loaded_once() -> None:
    """Every check module asks on import; the files are read for the first only."""
    assert default_registry() is default_registry()
    assert load_registry(data_dir("profiles")).profile_names == default_registry().profile_names
