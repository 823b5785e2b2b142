"""Equal requests on an idle engine (GEN-037 and 038)."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.comparing import difference, ended_well
from conformance.checks.core.stream_cases import prose
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.wire.declared import Declared

# Sampled from the whole distribution, so many tokens are the same by chance almost never.
TOKENS = 8
GREEDY_RUNS = 3
LARGE_SEED = 2**63 + 1


def _seeded(declared: Declared, seed: int, sequences: int = 1) -> Case:
    request = prose(declared, max_tokens=TOKENS, temperature=1.0, seed=seed)
    if sequences > 1:
        request.sampling.num_sequences = sequences
    return Case(request)


def _seeds(declared: Declared) -> Iterable[Case]:
    yield _seeded(declared, 0)
    yield _seeded(declared, LARGE_SEED)
    if declared.max_num_sequences > 1:
        yield _seeded(declared, 11, 2)


def _any_seed(declared: Declared) -> st.SearchStrategy[Case]:
    return st.integers(0, 2**64 - 1).map(lambda seed: _seeded(declared, seed))


@check(
    "OE-CORE-GEN-037",
    advice="Seed the sampler of each output from the request's seed alone, 0 included: test its "
    "presence and not its value. Otherwise report deterministic_seed false.",
    table=_seeds,
    strategy=_any_seed,
)
def seed_repeats(probe: Probe, case: Case) -> None:
    """Two equal requests with a seed give equal outputs."""
    _compare(probe, case, 2, "the output of an equal request with this seed")


def _greedy(declared: Declared) -> Iterable[Case]:
    return [Case(prose(declared, max_tokens=TOKENS, temperature=0.0))]


@check(
    "OE-CORE-GEN-038",
    advice="Compute a row in the same shape and order each time; greedy output that depends on "
    "what else ran makes failures of clients impossible to repeat.",
    table=_greedy,
)
def greedy_repeats(probe: Probe, case: Case) -> None:
    """Three equal greedy requests give equal outputs."""
    _compare(probe, case, GREEDY_RUNS, "the output of an equal greedy request")


def _compare(probe: Probe, case: Case, runs: int, expected: str) -> None:
    if not steering.idle(probe):
        probe.skip("the engine was busy before")
    first = ended_well(probe, case)
    for _ in range(runs - 1):
        again = ended_well(probe, case)
        found = difference(first, again)
        if found is not None:
            probe.fail(expected, f"another one: {found}", again)
