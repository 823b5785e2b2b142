"""Profiles of servers that cannot run here hold for servers of their shape, and for no other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.http.limits import DEFAULT
from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import Status
from conformance.mutants.http.ask import CONTEXT_TOKENS, MODEL
from conformance.mutants.http.matrix import PATIENCE
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.runner.budget import BUDGETS
from conformance.runner.http_session import HttpOptions
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.declared import HARMLESS
from conformance.runtimes.profile import Effect
from conformance.runtimes.registry import runtime_profile
from conformance.runtimes.script import BAD
from tests.http.runtimes.shapes import SHAPES, Shape

SILENT = frozenset({Status.NOT_APPLICABLE, Status.EXCLUDED})
FAILING = {
    "chat": {"messages": [{"role": "user", "content": BAD.prompt}]},
    "completions": {"prompt": BAD.prompt},
}
BY_NAME = {shape.name: shape for shape in SHAPES}


def judged(
    shape: Shape, server_as: HttpMutant | None, ids: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], Mapping[str, tuple[Status, str]]]:
    """What is wrong with a server by the shape's profile, and the status of each row."""
    with serving(server_as, shape.all_routes) as server:
        report = run_http(
            HttpOptions(
                HttpTarget(parse_origin(server.origin)),
                runtime_profile(f"runtimes/{shape.name}"),
                model=MODEL,
                scripted=True,
                conditions=shape.conditions,
                allowed=HARMLESS | {Effect.CONSUMPTIVE, Effect.INFERENCE_CANARY},
                context_tokens=CONTEXT_TOKENS,
                budget=BUDGETS["quick"],
                selection=Selection(ids=ids),
                limits=DEFAULT.within(PATIENCE),
                stream_errors=FAILING,
                seed=1,
            )
        )
    statuses = {
        each.requirement: (each.status, each.detail)
        for each in report.judgements
        if each.status not in SILENT
    }
    assert report.comparison is not None
    return report.comparison.problems, statuses


@pytest.mark.parametrize("name", BY_NAME)
def test_a_server_of_this_shape_is_right(name: str) -> None:
    """Nothing that its source or documentation says is taken for a breach."""
    shape = BY_NAME[name]
    problems, statuses = judged(shape, shape.faulty)
    assert problems == ()
    wrong = {Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR}
    assert {row: said for row, said in statuses.items() if said[0] in wrong} == {}
    assert sum(said[0] is Status.PASS for said in statuses.values()) > 30


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("vllm@0.26.0", "OE-HTTP-ERR-002"),
        ("sglang@0.5.16", "OE-HTTP-ERR-002"),
        ("sglang@0.5.16", "OE-HTTP-CHAT-035"),
        ("vllm@0.26.0", "OE-HTTP-COMP-032"),
        ("tensorrt-llm@1.2.1", "OE-HTTP-ERR-002"),
        ("tgi@3.3.7", "OE-HTTP-ERR-002"),
    ],
)
def test_another_shape_is_seen(name: str, row: str) -> None:
    """A server that does as OpenAI does is not that one."""
    shape = BY_NAME[name]
    _, statuses = judged(shape, None, ids=(row,))
    assert statuses[row][0] in {Status.FAIL, Status.WARN}
