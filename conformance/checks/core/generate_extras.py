"""What rides along with a prompt: media, adapters, hints outside the contract (GEN-027 to 029)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.comparing import difference, ended_well, repeatable
from conformance.checks.core.judging import (
    BUSY,
    DISTURBED,
    any_with,
    engine_errors,
    faults_of,
    finishes,
    judge,
    outcome,
)
from conformance.checks.core.stream_cases import prose
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.oracle.extras import UNKNOWN_ADAPTER
from conformance.strategies import requests
from conformance.strategies.extras import HINTS
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1


@check(
    "OE-CORE-GEN-027",
    advice="Refuse a media item without a source, and any media if ModelInfo reports "
    "supports_multimodal false; a prompt without its image is another prompt.",
    table=faults_of("GEN-027"),
    strategy=any_with("GEN-027"),
)
def impossible_media(probe: Probe, case: Case) -> None:
    """Media that cannot be used is refused."""
    judge(probe, case)


def _any_unknown_adapter(declared: Declared) -> st.SearchStrategy[Case]:
    def named(request: v1.GenerateRequest, tail: str) -> Case:
        changed = v1.GenerateRequest()
        changed.CopyFrom(request)
        changed.lora_name = UNKNOWN_ADAPTER + tail
        return Case(changed)

    tails = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=12)
    return st.builds(named, requests(declared), tails)


@check(
    "OE-CORE-GEN-028",
    advice="Look lora_name up before acceptance: NOT_FOUND for a name that is not loaded, "
    "INVALID_ARGUMENT or FAILED_PRECONDITION on an engine without adapters. Never fall back to "
    "the base model.",
    table=faults_of("GEN-028"),
    strategy=_any_unknown_adapter,
)
def unknown_adapter(probe: Probe, case: Case) -> None:
    """An adapter that is not there is not replaced by the base model."""
    judge(probe, case)


def _hinted(request: v1.GenerateRequest, hints: Mapping[str, Any]) -> Case:
    changed = v1.GenerateRequest()
    changed.CopyFrom(request)
    changed.extra.Clear()
    changed.extra.update(hints)
    return Case(changed)


def _hints(declared: Declared) -> Iterable[Case]:
    base = prose(declared, temperature=0.0)
    return [_hinted(base, hints) for hints in HINTS]


def _any_hints(declared: Declared) -> st.SearchStrategy[Case]:
    # The prefix keeps clear of every key that some engine knows.
    keys = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8).map(
        lambda tail: f"oe_conform_{tail}"
    )
    plain = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
    scalars = plain | st.text("aé語🙂 {}\"'", max_size=8)
    inner = st.lists(scalars, max_size=2) | st.dictionaries(keys, scalars, max_size=2)
    values = scalars | inner | st.lists(inner, max_size=2)
    structs = st.dictionaries(keys, values, min_size=1, max_size=3)
    return st.builds(_hinted, requests(declared), structs)


@check(
    "OE-CORE-GEN-029",
    advice="Read the keys of extra that you know and skip the others; do not refuse them and do "
    "not pass them on as options.",
    table=_hints,
    strategy=_any_hints,
)
def unknown_hints(probe: Probe, case: Case) -> None:
    """Keys of extra that nobody knows change nothing: not the answer and not the output."""
    request = case.request
    if not isinstance(request, v1.GenerateRequest):
        probe.skip("no request")
    if not repeatable(request):
        probe.skip("the request may have another output each time")
    if not expect(probe.prepared(case), case.metadata, probe.declared).accepted:
        probe.skip("the request is not certain to be accepted")
    plain = v1.GenerateRequest()
    plain.CopyFrom(request)
    plain.ClearField("extra")
    before = ended_well(probe, Case(plain))
    hinted = _hinted_answer(probe, case)
    if not (finishes(hinted) and hinted.ending.ok):
        # The request without the keys must still be served, or the keys are not to blame.
        ended_well(probe, Case(plain))
        probe.fail("the outcome without unknown keys in extra", outcome(hinted), hinted)
    found = difference(before, hinted)
    if found is not None and _always_otherwise(probe, case, plain, before):
        probe.fail("the output without unknown keys in extra", f"another one: {found}", hinted)


def _hinted_answer(probe: Probe, case: Case) -> Transcript:
    hinted = probe.generate(case)
    if hinted.rejected and hinted.ending.code in BUSY:
        probe.skip(f"the engine was busy: {hinted.ending.code.name}")
    if any(error.code in DISTURBED for _, error in engine_errors(hinted)):
        probe.skip("the request was disturbed")
    return hinted


def _always_otherwise(
    probe: Probe, case: Case, plain: v1.GenerateRequest, before: Transcript
) -> bool:
    """Whether the request repeats itself without the keys, and only without them.

    Engines differ from themselves for many reasons, one of them that this request may not repeat.
    """
    for _ in range(2):
        if difference(before, ended_well(probe, Case(plain))) is not None:
            return False
    return difference(before, _hinted_answer(probe, case)) is not None
