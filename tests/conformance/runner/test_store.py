from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import ConfigError
from conformance.model.case import FRESH_ID, Case
from conformance.runner.result import Failure
from conformance.runner.store import load, name_of, save
from oe_wire import v1

REQUEST = v1.GenerateRequest(request_id=FRESH_ID, model="m", prompt="a\x00ü")
REQUEST.sampling.temperature = float("nan")
CASE = Case(REQUEST, (("openengine-priority", "1"), ("x-bin", b"\x00\xff")), {"after": 2})
FAILURE = Failure("OE-CORE-GEN-016", "OE-CORE-GEN-016", CASE, "this", "that", None, None, 3, 3)


def test_a_stored_failure_reads_back_to_the_byte(tmp_path: Path) -> None:
    """NaN, NUL, binary metadata and parameters survive."""
    stored = load(str(save(FAILURE, tmp_path)))
    assert stored.case.request is not None
    assert stored.case.request.SerializeToString() == REQUEST.SerializeToString()
    assert (stored.case.metadata, stored.case.params) == (CASE.metadata, CASE.params)
    assert (stored.requirement, stored.expected) == ("OE-CORE-GEN-016", "this")


@pytest.mark.parametrize("name", ["OE-CORE-GEN-016", name_of(FAILURE)])
def test_a_failure_is_found_by_id_and_by_name(tmp_path: Path, name: str) -> None:
    """What the report prints is enough."""
    save(FAILURE, tmp_path)
    assert load(name, tmp_path).actual == "that"


def test_the_same_failure_has_one_file(tmp_path: Path) -> None:
    """Running again does not pile files up."""
    assert save(FAILURE, tmp_path) == save(FAILURE, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 9}, "expected format 1"),
        ({"case": {"message": "openengine.v1.GenerateRequest", "bytes": "!"}}, "'bytes'"),
        ({"case": {"message": "no.such.Message", "bytes": ""}}, "'message'"),
        ({"case": {"metadata": [["a"]]}}, "'metadata'"),
        ({"case": {"params": []}}, "'params'"),
    ],
)
def test_a_spoilt_file_is_an_error_that_names_the_key(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """Nothing of it is guessed."""
    path = save(FAILURE, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigError, match=said):
        load(str(path))


def test_missing_and_ambiguous_names(tmp_path: Path) -> None:
    """Each says what would have been right."""
    with pytest.raises(ConfigError, match="the name that"):
        load("OE-CORE-GEN-001", tmp_path)
    save(FAILURE, tmp_path)
    other = Failure("OE-CORE-GEN-016", "OE-CORE-GEN-016", Case(), "this", "that", None, None)
    save(other, tmp_path)
    with pytest.raises(ConfigError, match="names 2 failures"):
        load("OE-CORE-GEN-016", tmp_path)
