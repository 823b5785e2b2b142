"""Candidate tokens that cannot be had, or are asked for without probabilities (GEN-025, 026)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.judging import (
    BUSY,
    any_with,
    faults_of,
    judge_offer,
    outcome,
    send_cut,
)
from conformance.checks.core.stream_cases import offers
from conformance.checks.probe import Probe, describe
from conformance.laws.stream import output_records, prompts, request_of
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import Feature, requests, simple_request
from conformance.strategies.requests import candidate_selections
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# A vocabulary is larger than this, any sensible number of candidates smaller.
MANY = 100


@check(
    "OE-CORE-GEN-025",
    advice="Refuse a selection without a variant, in a mode that ModelInfo does not list, above "
    "max_top_n, or with an id outside the vocabulary; do not clamp and do not drop it.",
    table=faults_of("GEN-025"),
    strategy=any_with("GEN-025"),
)
def impossible_candidates(probe: Probe, case: Case) -> None:
    """Candidates that are not on offer are refused."""
    judge_offer(probe, case, lambda transcript: _unlisted_but_given(transcript, probe.declared))


def _unlisted_but_given(transcript: Transcript, declared: Declared) -> bool:
    """Whether every position has the candidates that were asked for, in a mode not listed."""
    request = request_of(transcript)
    if request is None or declared.model is None:
        return False
    generation = declared.model.generation
    infos = [record.info for _, record in output_records(transcript)]
    selection, offer = request.response.output_candidates, generation.output_logprobs
    if request.response.HasField("prompt_candidates"):
        infos = [info for _, prompt in prompts(transcript) for info in prompt.tokens[1:]]
        selection, offer = request.response.prompt_candidates, generation.prompt_logprobs
    variant = selection.WhichOneof("selection")
    if variant is None:
        return False
    mode = v1.CandidateTokenSelectionMode.Value(f"CANDIDATE_TOKEN_SELECTION_MODE_{variant.upper()}")
    listed = mode in offer.candidate_selection_modes
    return not listed and bool(infos) and all(_answers(selection, i.candidates) for i in infos)


def _answers(selection: v1.CandidateTokenSelection, given: Sequence[v1.LogProb]) -> bool:
    match selection.WhichOneof("selection"):
        case "top_n":
            return len(given) >= selection.top_n
        case "token_ids":
            return {each.token_id for each in given} >= set(selection.token_ids.ids)
        case _:
            return len(given) > MANY


def _without_logprobs(declared: Declared) -> Iterator[Case]:
    """Each kind of candidates with the flag that goes with it left out, and set to false."""
    for which in ("output", "prompt"):
        if not offers(declared, which):
            continue
        for selection in candidate_selections(declared, which)[:1]:
            for flag in (None, False):
                request = simple_request(declared)
                getattr(request.response, f"{which}_candidates").CopyFrom(selection)
                if flag is not None:
                    setattr(request.response, f"return_{which}_logprobs", flag)
                yield Case(request)


def _any_without_logprobs(declared: Declared) -> st.SearchStrategy[Case]:
    def drop(request: v1.GenerateRequest) -> Case:
        changed = v1.GenerateRequest()
        changed.CopyFrom(request)
        changed.response.ClearField("return_output_logprobs")
        changed.response.ClearField("return_prompt_logprobs")
        return Case(changed)

    return requests(declared, Feature.OUTPUT_CANDIDATES).map(drop)


def _table(declared: Declared) -> Iterable[Case]:
    return list(_without_logprobs(declared))


@check(
    "OE-CORE-GEN-026",
    advice="Refuse candidates without the matching return_*_logprobs: whoever asks for them "
    "expects them, and gets nothing.",
    table=_table,
    strategy=_any_without_logprobs,
)
def candidates_alone(probe: Probe, case: Case) -> None:
    """Candidates without the flag that returns them are refused rather than ignored."""
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    alone = probe.requirement in expectation.either and len(expectation.either) == 1
    if not alone or expectation.broken or expectation.unknown:
        probe.skip(f"the request decides nothing about this row: {expectation.describe()}")
    transcript = send_cut(probe, case, request)
    codes = expectation.either[probe.requirement]
    if transcript.rejected and transcript.ending.code in BUSY:
        probe.skip(f"the engine was busy: {transcript.ending.code.name}")
    if transcript.rejected and transcript.ending.code not in codes:
        probe.fail("INVALID_ARGUMENT", describe(transcript), transcript)
    if not transcript.rejected:
        probe.fail("INVALID_ARGUMENT: candidates lack their flag", outcome(transcript), transcript)
