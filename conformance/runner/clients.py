"""Judges what clients need of an engine, after and apart from the run over its profiles."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from conformance.checks import client_checks
from conformance.model.client import ClientSet, Otherwise, concerns
from conformance.model.requirement import Requirement
from conformance.model.status import Status
from conformance.runner.plan import Row
from conformance.runner.session import Session


class Result(StrEnum):
    """Whether an engine gives a client what it needs."""

    MET = "met"
    NOT_MET = "not_met"
    NOT_APPLICABLE = "not_applicable"
    NOT_OBSERVED = "not_observed"  # nothing showed it, or the suite could not look


# A need that is met only sometimes is not met: clients meet the other times.
_RESULTS: Mapping[Status, Result] = {
    Status.PASS: Result.MET,
    Status.FAIL: Result.NOT_MET,
    Status.FLAKY: Result.NOT_MET,
    Status.NOT_APPLICABLE: Result.NOT_APPLICABLE,
}


@dataclass(frozen=True, slots=True)
class NeedResult:
    """One need on one target, with its cost. expected: what the check looked for, when it found
    something else; detail: what it found, or why nothing was judged.
    """

    need: Requirement
    otherwise: Otherwise
    result: Result
    expected: str = ""
    detail: str = ""
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientResult:
    """The needs of one client on one target, in the order of its file."""

    client: ClientSet
    needs: tuple[NeedResult, ...]

    @property
    def counts(self) -> Mapping[Result, int]:
        """How many needs have each result that occurred."""
        found = Counter(need.result for need in self.needs)
        return {result: found[result] for result in Result if found[result]}

    @property
    def text(self) -> str:
        """One line: `client needs dynamo 1.0: 30 met, 1 not met`."""
        parts = [f"{count} {result.replace('_', ' ')}" for result, count in self.counts.items()]
        return f"client needs {self.client.title}: {', '.join(parts)}"


def judge_clients(
    session: Session, clients: Iterable[ClientSet], limit: float | None = None
) -> tuple[ClientResult, ...]:
    """Judge every need of each client, one after the other. limit: seconds for all of them.

    Ctrl-C and the limit leave the needs after them unobserved.
    """
    end = None if limit is None else time.monotonic() + limit
    return tuple(_judge(session, client, end) for client in clients)


def _judge(session: Session, client: ClientSet, end: float | None) -> ClientResult:
    checks = client_checks(client.name)
    results: dict[str, NeedResult] = {}
    connection = session.connect()
    try:
        for need in client.needs:
            if end is not None and time.monotonic() >= end:
                break
            applies = concerns(need, session.declared)
            otherwise = client.otherwise[need.id]
            if not applies.applies:
                results[need.id] = NeedResult(
                    need, otherwise, Result.NOT_APPLICABLE, detail=applies.detail
                )
                continue
            check = checks[need.id]
            judged = session.judge(Row(need, check), check, connection)
            judgement, failure = judged.judgement, judged.failure
            results[need.id] = NeedResult(
                need,
                otherwise,
                _RESULTS.get(judgement.status, Result.NOT_OBSERVED),
                "" if failure is None else failure.expected,
                judgement.detail,
                judgement.requests,
                judgement.tokens,
                judgement.seconds,
            )
    except KeyboardInterrupt:
        session.stop.set()
    finally:
        connection.close()
    rest = "the run ended before it was judged"
    return ClientResult(
        client,
        tuple(
            results.get(need.id)
            or NeedResult(need, client.otherwise[need.id], Result.NOT_OBSERVED, detail=rest)
            for need in client.needs
        ),
    )


def all_met(results: Iterable[ClientResult]) -> bool:
    """Whether no need is known not to be met."""
    return all(need.result is not Result.NOT_MET for each in results for need in each.needs)
