"""The client's file, its checks and its mutants belong together, and to no profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance.checks import all_checks, client_checks
from conformance.data import data_dir
from conformance.errors import ConfigError
from conformance.model.client import client_set, client_sets, load_client_sets
from conformance.model.registry import default_registry
from conformance.mutants.needs import CLIENT_MUTANTS
from oe_wire.services import METHODS

DYNAMO = client_set("dynamo")
IDS = tuple(f"OE-CLIENT-DYNAMO-{number:03}" for number in range(1, 35))
FILE = """
[client]
name = "other"
version = "1.0"
summary = "A client."
id_prefix = "OE-CLIENT-OTHER"

[[need]]
id = "OE-CLIENT-OTHER-001"
text = "Something."
otherwise = "refused"
"""


def test_ids_are_append_only() -> None:
    """Exactly the known needs, in order."""
    assert tuple(need.id for need in DYNAMO.needs) == IDS
    assert DYNAMO.title == "dynamo 1.0"


def test_needs_are_apart_from_the_profiles() -> None:
    """No requirement of a profile is a need, and no check of a need is one of the suite's."""
    assert not set(IDS) & set(default_registry().by_id)
    assert not set(IDS) & set(all_checks())
    assert "client_dynamo" not in default_registry().profile_names


def test_every_need_has_a_check_and_a_mutant() -> None:
    """A need that nothing can show to be missing would be an empty promise."""
    mutants = [mutant for group in CLIENT_MUTANTS["dynamo"] for mutant in group]
    assert set(client_checks("dynamo")) == set(IDS)
    assert {mutant.requirement for mutant in mutants} == set(IDS)
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert all(set(mutant.behaviour) <= set(METHODS) for mutant in mutants)
    assert all(mutant.also <= set(IDS) for mutant in mutants)


def test_an_unknown_client_is_an_error_that_helps() -> None:
    """A near miss is suggested."""
    with pytest.raises(ConfigError, match="dynamo"):
        client_set("dynamoo")


def test_a_file_is_read(tmp_path: Path) -> None:
    """A right file gives its needs."""
    (tmp_path / "other-1.0.toml").write_text(FILE)
    assert load_client_sets(tmp_path)["other"].needs[0].profile == "client_other"
    assert list(client_sets()) == ["dynamo"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('otherwise = "refused"', 'otherwise = "sad"', "one of refused, fatal, degraded"),
        ('id = "OE-CLIENT-OTHER-001"', 'id = "OE-CLIENT-ELSE-001"', "OE-CLIENT-OTHER-nnn"),
        ('text = "Something."', 'text = "Something."\napplies = "roles == 1"', "need OE-CLIENT"),
        ('text = "Something."', 'text = "Something."\nlevel = "MUST"', "only id, text"),
        ('summary = "A client."', "", "summary"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    """The error names the file and what was expected."""
    (tmp_path / "other-1.0.toml").write_text(FILE.replace(old, new))
    with pytest.raises(ConfigError, match=said) as error:
        load_client_sets(tmp_path)
    assert "other-1.0.toml" in str(error.value)


def test_two_files_of_one_client_are_refused(tmp_path: Path) -> None:
    """It would not be clear which one counts."""
    for name in ("other-1.0.toml", "other-1.1.toml"):
        (tmp_path / name).write_text(FILE)
    with pytest.raises(ConfigError, match="two files"):
        load_client_sets(tmp_path)


def test_an_id_given_twice_is_refused(tmp_path: Path) -> None:
    """Each need has its own id."""
    need = FILE[FILE.index("[[need]]") :]
    (tmp_path / "other-1.0.toml").write_text(FILE + need)
    with pytest.raises(ConfigError, match="each once"):
        load_client_sets(tmp_path)


def test_the_schema_is_valid_and_closed() -> None:
    """It obeys draft 2020-12 and no table accepts an unknown key."""
    schema = json.loads((data_dir("profiles") / "schema" / "client.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    tables = [schema, schema["properties"]["client"], schema["properties"]["need"]["items"]]
    assert all(table["additionalProperties"] is False for table in tables)
