"""Mutants of what clients need: each need's check must notice its own, and no other need's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.model.client import ClientSet
from conformance.model.status import Status
from conformance.mutants import client_dynamo
from conformance.mutants.matrix import OWN, Matrix, Trial
from conformance.mutants.mutant import Mutant
from conformance.mutants.proxy import proxied
from conformance.runner.clients import ClientResult, Result, judge_clients
from conformance.runner.session import Options, open_session
from conformance.wire.target import Target, parse_address

# By client; the second tuple stands before an engine of the prefill role.
CLIENT_MUTANTS: Mapping[str, tuple[tuple[Mutant, ...], tuple[Mutant, ...]]] = {
    "dynamo": (client_dynamo.MUTANTS, client_dynamo.PREFILL_MUTANTS),
}


def run_needs(
    target: Target, client: ClientSet, listener: Callable[[Trial], None] = lambda _: None
) -> Matrix:
    """Try every mutant of the client's needs that fits the role of the engine.

    listener: told each trial as it ends.
    """
    plain = judge_needs(target.address, client)
    broken = {n.need.id: n.detail for n in plain.needs if n.result is Result.NOT_MET}
    if broken:
        return Matrix(broken, ())
    role = open_session(Options(target, budget=OWN, seed=0)).declared.role
    trials = []
    for mutant in CLIENT_MUTANTS[client.name][role == "prefill"]:
        trial = try_need(target.address, client, mutant)
        listener(trial)
        trials.append(trial)
    return Matrix({}, tuple(trials))


def judge_needs(address: str, client: ClientSet, mutant: Mutant | None = None) -> ClientResult:
    """The needs of a client on the plaintext engine at `address`, behind a mutant."""
    with proxied(address, mutant) as front:
        session = open_session(Options(Target(parse_address(front)), budget=OWN, seed=0))
        return judge_clients(session, [client])[0]


def try_need(address: str, client: ClientSet, mutant: Mutant) -> Trial:
    """What the needs say of an engine, that meets them all, behind the mutant.

    Detection can fail on a mutant that changes the identity; nothing here does.
    """
    broken: dict[str, str] = {}
    own, detail = Status.PASS, ""
    for each in judge_needs(address, client, mutant).needs:
        if each.need.id == mutant.requirement:
            own = Status.FAIL if each.result is Result.NOT_MET else Status.PASS
            detail = f"{each.result}: {each.detail}"
        elif each.result is Result.NOT_MET and each.need.id not in mutant.also:
            broken[each.need.id] = each.detail
    return Trial(mutant, own, detail, broken)
