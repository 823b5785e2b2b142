from __future__ import annotations

import pytest

from conformance.checks import all_checks
from conformance.runner.budget import Budget
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options
from conformance.wire.target import Target, parse_address
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, Stream

SECRET = "s3cret-token-value"


def without_usage(_: v1.GenerateRequest, stream: Stream) -> Stream:
    for message in stream:
        message.ClearField("usage")
        yield message


@pytest.fixture(scope="module")
def wrong() -> tuple[Report, Target]:
    """A run against an engine that breaks two rules, reached with a credential, by a suite that has
    no check for CAP-016.
    """
    broken = ("OE-CORE-GEN-016", "OE-CORE-USE-001")
    ids = (*broken, "OE-CORE-STREAM-00?", "OE-CORE-GEN-001", "OE-CORE-CAP-016")
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}), spoil=without_usage)) as engine:
        target = Target(
            parse_address(engine.address),
            metadata=(("authorization", SECRET),),
            secrets={"authorization": "MY_TOKEN"},
        )
        budget = Budget("few", 3, 60, 8_000, 30, 2)
        selection = Selection(ids=ids)
        options = Options(target, budget=budget, seed=1, selection=selection)
        checks = {row: each for row, each in all_checks().items() if row != "OE-CORE-CAP-016"}
        return run(options, checks=checks), target
