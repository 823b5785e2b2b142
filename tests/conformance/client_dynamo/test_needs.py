"""The needs on engines that meet them, on real servers' behaviour, and behind their mutants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from conformance.model.client import client_set
from conformance.mutants.mutant import Mutant
from conformance.mutants.needs import CLIENT_MUTANTS, judge_needs, try_need
from conformance.runner.clients import Result
from oe_wire import v1
from tests.legacy_engine.behaviour import CLEAN, MOCKER, TRTLLM, Behaviour
from tests.legacy_engine.server import LegacyEngine

DYNAMO = client_set("dynamo")
PREFILL = v1.ENGINE_ROLE_PREFILL
AGGREGATED_MUTANTS, PREFILL_MUTANTS = CLIENT_MUTANTS["dynamo"]
# What the client's own sources say of the two servers, need by need.
NOT_MET = {
    "trtllm": (TRTLLM, {4, 12, 33}),
    "mocker": (MOCKER, {3}),
    "mocker, prefill": (replace(MOCKER, role=PREFILL), {3, 28, 30}),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[LegacyEngine]:
    """An engine that generates and meets every need."""
    with LegacyEngine(CLEAN) as running:
        yield running


@pytest.fixture(scope="module")
def prefill() -> Iterator[LegacyEngine]:
    """The same in the prefill role."""
    with LegacyEngine(replace(CLEAN, role=PREFILL)) as running:
        yield running


@pytest.mark.parametrize("role", ["engine", "prefill"])
def test_a_right_engine_meets_every_need(role: str, request: pytest.FixtureRequest) -> None:
    """Nothing is missing; what the engine does not have is not observed."""
    judged = judge_needs(request.getfixturevalue(role).address, DYNAMO)
    assert judged.counts.get(Result.NOT_MET, 0) == 0
    unseen = {need.need.id[-3:] for need in judged.needs if need.result is Result.NOT_OBSERVED}
    assert unseen <= {"017", "034"}  # it has no KV events


@pytest.mark.parametrize("name", NOT_MET)
def test_real_servers_miss_what_is_known(name: str) -> None:
    """Exactly the needs that the two servers are known to miss."""
    behaviour: Behaviour
    behaviour, expected = NOT_MET[name]
    with LegacyEngine(behaviour) as running:
        judged = judge_needs(running.address, DYNAMO)
    missing = {int(n.need.id[-3:]) for n in judged.needs if n.result is Result.NOT_MET}
    assert missing == expected


@pytest.mark.parametrize("mutant", AGGREGATED_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_noticed(engine: LegacyEngine, mutant: Mutant) -> None:
    """The need that was taken away is not met, and every other one is as before."""
    trial = try_need(engine.address, DYNAMO, mutant)
    assert trial.killed, trial.own_detail
    assert trial.collateral == {}


@pytest.mark.parametrize("mutant", PREFILL_MUTANTS, ids=lambda mutant: mutant.name)
def test_prefill_mutant_is_noticed(prefill: LegacyEngine, mutant: Mutant) -> None:
    """The same on the prefill side."""
    trial = try_need(prefill.address, DYNAMO, mutant)
    assert trial.killed, trial.own_detail
    assert trial.collateral == {}
