"""No law finds anything on what a right engine may answer."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from conformance.laws import Finding, judge, laws_of
from conformance.laws.law import GENERATE
from conformance.wire.transcript import Transcript
from tests.conformance.laws.build import DECLARED, aggregated
from tests.conformance.laws.engine import calls

QUICK = settings(
    max_examples=400,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_right_engine_breaks_no_law() -> None:
    """Not one finding, and each law ruled True somewhere: none is silent on every stream."""
    kept: set[str] = set()

    @QUICK
    @given(calls())
    def judged(call: Transcript) -> None:
        for declared in (DECLARED, aggregated()):
            rulings = judge(call, declared)
            found = {law: each for law, each in rulings.items() if isinstance(each, Finding)}
            assert not found
            kept.update(law for law, each in rulings.items() if each is True)

    judged()
    assert kept == laws_of(GENERATE)
