"""Laws about log-probabilities, ranks and candidates on token records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import Record, output_records, prompts, request_of
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# A softmax in single precision may come out this far above probability 1.
LOGPROB_SLACK = 1e-6


def prompt_records(transcript: Transcript) -> Iterator[Record]:
    """The token records of the prompt, positions counted per PromptOutput."""
    for event, prompt in prompts(transcript):
        for position, info in enumerate(prompt.tokens):
            yield Record(event, position, info)


@law("OE-CORE-STREAM-020")
def logprobs_on_demand(transcript: Transcript, _: Declared) -> Ruling:
    """A caller who asked for logprobs gets a possible one with each output token."""
    request = request_of(transcript)
    if request is None or not request.response.return_output_logprobs:
        return None
    judged = False
    for index, record in output_records(transcript):
        judged = True
        where = f"index {index}, record {record.position}"
        expected = f"a finite logprob of at most {LOGPROB_SLACK:g} on every record"
        if not record.info.HasField("logprob"):
            return Finding(expected, f"{where}: none", record.event)
        value = record.info.logprob
        if not math.isfinite(value) or value > LOGPROB_SLACK:
            return Finding(expected, f"{where}: {value:g}", record.event)
    return True if judged else None


@law("OE-CORE-STREAM-021")
def no_logprobs_unasked(transcript: Transcript, _: Declared) -> Ruling:
    """A caller who did not ask for logprobs gets bare output tokens."""
    request = request_of(transcript)
    if request is None or request.response.return_output_logprobs:
        return None
    judged = False
    for index, record in output_records(transcript):
        judged = True
        info = record.info
        if info.HasField("logprob") or info.HasField("rank") or info.candidates:
            return Finding(
                "no logprob, rank or candidates: none were asked for",
                f"index {index}, record {record.position} has some",
                record.event,
            )
    return True if judged else None


def _top_n(limit: int, record: Record) -> tuple[str, str] | None:
    candidates = record.info.candidates
    if len(candidates) > limit:
        return f"at most {limit} candidates", f"{len(candidates)}"
    ranks = [candidate.rank for candidate in candidates if candidate.HasField("rank")]
    if ranks != sorted(ranks):
        return "candidates sorted by rank", "another order"
    return None


def _exactly(ids: frozenset[int], record: Record) -> tuple[str, str] | None:
    got = {candidate.token_id for candidate in record.info.candidates}
    if got != ids:
        missing, extra = len(ids - got), len(got - ids)
        actual = f"{missing} of them missing, {extra} others"
        return f"exactly the {len(ids)} token ids asked for as candidates", actual
    return None


def _vocabulary(known: frozenset[int], size: int, record: Record) -> tuple[str, str] | None:
    got = {candidate.token_id for candidate in record.info.candidates}
    if missing := len(known - got):
        actual = f"{len(got)} candidates, {missing} known token id(s) not among them"
        return "the whole vocabulary as candidates", actual
    if len(got) != size:
        return f"the same {size} vocabulary entries at each position", f"{len(got)}"
    return None


def _breach(
    selection: v1.CandidateTokenSelection, record: Record, known: frozenset[int], size: int
) -> tuple[str, str] | None:
    match selection.WhichOneof("selection"):
        case "top_n":
            return _top_n(selection.top_n, record)
        case "token_ids":
            return _exactly(frozenset(selection.token_ids.ids), record)
        case _:
            return _vocabulary(known, size, record)


def _follow(
    selection: v1.CandidateTokenSelection, records: Sequence[Record], known: frozenset[int]
) -> Ruling:
    """Judge the candidates of `records` by the caller's selection."""
    if selection.WhichOneof("selection") is None or not records:
        return None
    size = len(records[0].info.candidates)
    for record in records:
        if breach := _breach(selection, record, known, size):
            return Finding(breach[0], f"record {record.position}: {breach[1]}", record.event)
    return True


@law("OE-CORE-STREAM-022", reads_content=True)
def candidates_as_selected(transcript: Transcript, declared: Declared) -> Ruling:
    """The alternatives shown for a token are those the caller selected."""
    request = request_of(transcript)
    if request is None:
        return None
    options = request.response
    records = [record for _, record in output_records(transcript)]
    # What was produced or seen in the warm-up is in the vocabulary for certain.
    known = frozenset(declared.known_tokens) | {record.info.token_id for record in records}
    rulings: list[Ruling] = []
    if options.return_output_logprobs and options.HasField("output_candidates"):
        rulings.append(_follow(options.output_candidates, records, known))
    if options.return_prompt_logprobs and options.HasField("prompt_candidates"):
        # The first token of the prompt has no candidates.
        skipped = 0 if options.prompt_logprob_start else 1
        prompt = [r for r in prompt_records(transcript) if r.position >= skipped]
        rulings.append(_follow(options.prompt_candidates, prompt, known))
    found = next((ruling for ruling in rulings if isinstance(ruling, Finding)), None)
    return found or (True if True in rulings else None)


def _ranked(record: Record) -> bool:
    candidates = record.info.candidates
    return record.info.HasField("rank") or any(c.HasField("rank") for c in candidates)


def _rank_breach(record: Record) -> tuple[str, str] | None:
    """What is wrong with the ranks of one record: (expected, actual)."""
    # The record's own rank is compared with no candidate's: of tokens that are equally likely,
    # an engine may rank the sampled one by counting and the candidates by sorting.
    by_rank: dict[int, int] = {}
    for candidate in record.info.candidates:
        if not candidate.HasField("rank"):
            continue
        if by_rank.setdefault(candidate.rank, candidate.token_id) != candidate.token_id:
            return "each rank once among the candidates", f"rank {candidate.rank} twice"
    if 0 in by_rank or (record.info.HasField("rank") and record.info.rank == 0):
        return "ranks from 1 on", "rank 0"
    return None


@law("OE-CORE-STREAM-023", reads_content=True)
def ranks_are_ranks(transcript: Transcript, _: Declared) -> Ruling:
    """Ranks count from 1, and two candidates of one position never share one."""
    of_outputs = (record for _, record in output_records(transcript))
    records = [r for r in (*prompt_records(transcript), *of_outputs) if _ranked(r)]
    for record in records:
        if breach := _rank_breach(record):
            return Finding(breach[0], f"record {record.position}: {breach[1]}", record.event)
    return True if records else None


LAWS = (logprobs_on_demand, no_logprobs_unasked, candidates_as_selected, ranks_are_ranks)
