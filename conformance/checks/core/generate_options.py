"""Options beyond what is declared, and options that say the default (GEN-022, 030 and 031)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.judging import (
    any_with,
    completed,
    faults_of,
    judge,
    judge_offer,
    skip_uncertain,
)
from conformance.checks.core.stream_cases import STOP_WITHIN, prose
from conformance.checks.probe import Probe
from conformance.laws.stream import final_usage, finishes, succeeded
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.oracle.limits import limits_of
from conformance.strategies import requests, simple_request
from conformance.strategies.requests import FREQUENT_TEXTS
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1


@check(
    "OE-CORE-GEN-022",
    advice="Count the stop conditions of a request before anything else is done with them and "
    "refuse more than the reported max_stop_conditions; do not drop the last ones.",
    table=faults_of("GEN-022"),
    strategy=any_with("GEN-022"),
)
def too_many_stops(probe: Probe, case: Case) -> None:
    """More stop conditions than the reported limit are refused."""
    judge(probe, case)


def _unsupported(declared: Declared) -> Iterable[Case]:
    """Each option that is reported false, in a request that shows whether it is honoured."""
    limits = limits_of(declared)
    found = []
    if limits.stop_in_output is False:
        request = prose(declared, max_tokens=STOP_WITHIN, seed=1)
        request.stopping.conditions.add(stop_text=FREQUENT_TEXTS[0])
        request.stopping.include_stop_in_output = True
        found.append(Case(request))
    if limits.cache_bypass is False:
        request = cacheable(declared)
        request.kv.bypass_prefix_cache = True
        found.append(Case(request))
    if limits.cache_salt is False:
        request = cacheable(declared)
        request.kv.cache_salt = "fresh"
        found.append(Case(request))
    return found


def cacheable(declared: Declared) -> v1.GenerateRequest:
    """A request whose prompt is long enough for any prefix cache to keep a part of it."""
    count = 64 if limits_of(declared).token_input else None
    return simple_request(
        declared, prompt=f"{PROSE}, " * 8, tokens=count, max_tokens=2, temperature=0.0
    )


def cached(transcript: Transcript) -> int:
    """Cached prompt tokens as reported, 0 when nothing is."""
    usage = final_usage(transcript)
    return 0 if usage is None else usage[1].cached_prompt_tokens


@check(
    "OE-CORE-GEN-030",
    advice="Refuse an option that ModelInfo reports as not supported. Ignored, it gives the caller "
    "another service than the one asked for, without a word.",
    table=_unsupported,
)
def unsupported_option(probe: Probe, case: Case) -> None:
    """An option that is reported false is refused; one that works all the same is a warning."""
    request = case.request
    if not isinstance(request, v1.GenerateRequest):
        skip_uncertain(probe)
    salted = request.kv.HasField("cache_salt")
    warm = (salted or request.kv.bypass_prefix_cache) and _warmed(probe, request)
    if salted:
        # Under a salt that was used before, something may be cached rightly.
        request = probe.prepared(case)
        request.kv.cache_salt = probe.fresh_id()
    judge_offer(probe, Case(request), lambda transcript: _honoured(transcript, warm=warm))


def _warmed(probe: Probe, request: v1.GenerateRequest) -> bool:
    """Whether the same request without cache options takes something from the cache."""
    plain = v1.GenerateRequest()
    plain.CopyFrom(request)
    plain.ClearField("kv")
    return any(cached(probe.generate(Case(plain))) for _ in range(2))


def _honoured(transcript: Transcript, *, warm: bool) -> bool:
    request = transcript.request
    if not isinstance(request, v1.GenerateRequest):
        return False
    if request.kv.bypass_prefix_cache or request.kv.HasField("cache_salt"):
        return warm and not cached(transcript)
    stops = [
        (output, finish.finished.stop_match.stop_text) for output, finish in finishes(transcript)
    ]
    return bool(stops) and all(stop and output.text.endswith(stop) for output, stop in stops)


DEFAULTS = ("kv.bypass_prefix_cache", "stopping.include_stop_in_output", "stopping.ignore_eos")


def _with_defaults(request: v1.GenerateRequest, paths: Iterable[str]) -> Case:
    changed = v1.GenerateRequest()
    changed.CopyFrom(request)
    for path in paths:
        part, _, field = path.partition(".")
        setattr(getattr(changed, part), field, False)
    return Case(changed)


def _explicit_defaults(declared: Declared) -> Iterator[Case]:
    base = simple_request(declared)
    yield _with_defaults(base, DEFAULTS)
    for path in DEFAULTS:
        yield _with_defaults(base, [path])


def _any_defaults(declared: Declared) -> st.SearchStrategy[Case]:
    paths = st.lists(st.sampled_from(DEFAULTS), min_size=1, unique=True)
    return st.builds(_with_defaults, requests(declared), paths)


def _without_defaults(request: v1.GenerateRequest) -> v1.GenerateRequest:
    changed = v1.GenerateRequest()
    changed.CopyFrom(request)
    for path in DEFAULTS:
        part, _, field = path.partition(".")
        if not getattr(getattr(request, part), field):
            getattr(changed, part).ClearField(field)
    return changed


@check(
    "OE-CORE-GEN-031",
    advice="Test the value of an optional flag and not its presence: false is what an absent one "
    "means, and clients that fill in every field send it.",
    table=_explicit_defaults,
    strategy=_any_defaults,
)
def explicit_default(probe: Probe, case: Case) -> None:
    """A flag that is sent as false is as good as one that is not sent."""
    request = probe.prepared(case)
    if not expect(request, case.metadata, probe.declared).accepted:
        probe.skip("the request is not certain to be accepted")
    transcript = probe.generate(case)
    if transcript.rejected and not succeeded(probe.generate(Case(_without_defaults(request)))):
        probe.skip("the request without the flags is not served either")
    completed(probe, transcript)
