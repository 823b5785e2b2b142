"""Cached prompt tokens of requests that keep away from the common cache (USE-006 and 007)."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.check import check
from conformance.checks.core.comparing import ended_well
from conformance.checks.core.generate_options import cacheable, cached
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Runs that fill a cache, each of which the next may find.
WARMING = 2


def _long_prompt(declared: Declared) -> Iterable[Case]:
    return [Case(cacheable(declared))]


def _copy(case: Case) -> v1.GenerateRequest:
    request = v1.GenerateRequest()
    if isinstance(case.request, v1.GenerateRequest):
        request.CopyFrom(case.request)
    return request


def _warmed(probe: Probe, request: v1.GenerateRequest) -> Transcript:
    """Send it until a cache has it; the last run, which shows whether there is one."""
    for _ in range(WARMING):
        ended_well(probe, Case(request))
    last = ended_well(probe, Case(request))
    if not cached(last):
        probe.skip("the engine reports nothing as cached, so nothing can be shared")
    return last


@check(
    "OE-CORE-USE-006",
    advice="Compute the whole prompt when bypass_prefix_cache is true, and report 0 cached tokens "
    "or none at all.",
    table=_long_prompt,
)
def bypass_warm_cache(probe: Probe, case: Case) -> None:
    """Fill the cache with the case's prompt, then send it past the cache; a law judges the end."""
    _warmed(probe, _copy(case))
    request = _copy(case)
    request.kv.bypass_prefix_cache = True
    probe.generate(Case(request))
    probe.settle()


@check(
    "OE-CORE-USE-007",
    advice="Make cache_salt a part of each block's key, so that a request finds only blocks that "
    "were made under the same salt.",
    table=_long_prompt,
)
def salts_apart(probe: Probe, case: Case) -> None:
    """What one salt put into the cache another one does not find."""
    first = _copy(case)
    first.kv.cache_salt = probe.fresh_id()
    _warmed(probe, first)
    other = _copy(case)
    other.kv.cache_salt = probe.fresh_id()
    transcript = ended_well(probe, Case(other))
    if cached(transcript):
        actual = f"{cached(transcript)} cached prompt tokens"
        probe.fail("no cached prompt tokens under another salt", actual, transcript)
