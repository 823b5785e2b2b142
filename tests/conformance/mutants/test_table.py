from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.checks import all_checks
from conformance.errors import ConfigError
from conformance.model.registry import default_registry
from conformance.mutants.mutant import Mutant
from conformance.mutants.table import MUTANTS, collect, select
from oe_wire.services import METHODS

CHECKS: Mapping[str, object] = all_checks()


def test_every_checked_requirement_has_a_mutant() -> None:
    """A check that no mutant has made fail is not proven to be able to."""
    assert not set(CHECKS) - {mutant.requirement for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_well_formed(mutant: Mutant) -> None:
    """A mutant is for a checked requirement, changes RPCs of the wire and says what it is."""
    known = default_registry().by_id
    assert mutant.requirement in CHECKS
    assert mutant.also <= set(known)
    assert mutant.requirement not in mutant.also
    assert mutant.behaviour
    assert set(mutant.behaviour) <= set(METHODS)
    assert mutant.story.endswith(".")
    assert " " not in mutant.name


def test_two_mutants_of_one_name_are_an_import_error() -> None:
    """A name must say which mutant is meant."""
    with pytest.raises(ImportError, match=f"two mutants are named {MUTANTS[0].name}"):
        collect((*MUTANTS, MUTANTS[0]))


def test_select_all() -> None:
    """Without patterns every mutant is chosen."""
    assert select((), ()) == MUTANTS


def test_select_by_glob_and_name() -> None:
    """Requirement and name narrow the choice together."""
    chosen = select(("OE-CORE-ABORT-*",), ("*-cancel", "usage-missing"))
    assert [mutant.name for mutant in chosen] == ["late-cancel"]


@pytest.mark.parametrize(
    ("ids", "names", "hint"),
    [
        (("OE-CORE-ABORT-05",), (), "OE-CORE-ABORT-005"),
        ((), ("late-cancle",), "late-cancel"),
        (("OE-CORE-USE-*",), ("late-cancel",), "--id or --name alone"),
    ],
)
def test_select_nothing_is_an_error(
    ids: tuple[str, ...], names: tuple[str, ...], hint: str
) -> None:
    """A pattern that matches nothing is an error that helps, never an empty run."""
    with pytest.raises(ConfigError, match=hint):
        select(ids, names)
