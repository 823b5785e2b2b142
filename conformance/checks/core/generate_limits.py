"""How much: window, number of sequences, output length (GEN-010 to GEN-015)."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.judging import (
    BUSY,
    DISTURBED,
    engine_errors,
    error_name,
    faults_of,
    finishes,
    judge,
    skip_uncertain,
)
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.oracle.limits import limits_of
from conformance.strategies import simple_case
from conformance.strategies.faults import MAX_SENT_TOKENS, long_prompt_possible
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# A prompt that leaves room for this many tokens, asked for more than that: the end of the window
# is reached after a few steps whatever its size.
ROOM = 4
ASKED = 16


@check(
    "OE-CORE-GEN-010",
    advice="Compare the number of prompt tokens with max_context_length before admission; do not "
    "cut the prompt short and do not fail after acceptance.",
    table=faults_of("GEN-010"),
)
def prompt_over_window(probe: Probe, case: Case) -> None:
    """A prompt longer than the window is refused before acceptance."""
    judge(probe, case)


def _to_the_window(declared: Declared) -> Iterable[Case]:
    limits = limits_of(declared)
    longest = limits.max_context_tokens
    asked = min(ASKED, limits.max_output_tokens or ASKED)
    if not limits.token_input or longest is None or not long_prompt_possible(declared):
        yield Case()
        return
    room = min(ROOM, longest - 1, asked - 1)
    if room < 1:
        yield Case()
        return
    case = simple_case(declared, tokens=longest - room, temperature=0.0)
    if isinstance(case.request, v1.GenerateRequest):
        case.request.stopping.max_tokens = asked
        case.request.stopping.ignore_eos = True
    yield case


@check(
    "OE-CORE-GEN-011",
    advice="Either refuse prompt plus max_tokens above the window with INVALID_ARGUMENT at once, "
    "or generate up to the window and finish with LENGTH; never fail on the way.",
    table=_to_the_window,
)
def output_over_window(probe: Probe, case: Case) -> None:
    """A request that may outgrow the window is refused at once, or ends with LENGTH at it."""
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    prompt, window = len(request.token_ids.ids), limits_of(probe.declared).max_context_tokens
    if window is None or not prompt < window < prompt + request.stopping.max_tokens:
        probe.skip("prompt and max_tokens do not span the end of the reported window")
    limit = probe.pace.generate_limit(prompt + request.stopping.max_tokens)
    transcript = probe.call(GENERATE, request, metadata=case.metadata, deadline=limit)
    if transcript.rejected:
        _allowed_refusal(probe, transcript)
        return
    for at, error in engine_errors(transcript):
        if error.code in DISTURBED:
            probe.skip(f"the request was disturbed: {v1.ErrorCode.Name(error.code)}")
        actual = f"EngineError {error_name(error)}"
        probe.fail("no failure after acceptance", actual, transcript, at)
    if not transcript.ending.ok and not finishes(transcript):
        probe.fail("LENGTH at the window, or INVALID_ARGUMENT", describe(transcript), transcript)
    _ends_at_window(probe, transcript, window - prompt)


def _allowed_refusal(probe: Probe, transcript: Transcript) -> None:
    if transcript.ending.code in BUSY:
        probe.skip(f"the engine was busy: {transcript.ending.code.name}")
    probe.expect_rejected(transcript, grpc.StatusCode.INVALID_ARGUMENT)


def _ends_at_window(probe: Probe, transcript: Transcript, room: int) -> None:
    for at, finished in finishes(transcript):
        if finished.reason != v1.FINISH_REASON_LENGTH:
            _unless_always(probe)
            probe.fail("reason LENGTH at the window", f"reason {finished.reason}", transcript, at)
    # The last token needs no place in the window: it is never fed back.
    if (count := _records(transcript)) > room + 1:
        _unless_always(probe)
        probe.fail(f"at most {room} tokens up to the window", f"{count}", transcript)


def _unless_always(probe: Probe) -> None:
    """Skip when an output far from the window ends as badly: then stream rows are broken."""
    case = simple_case(probe.declared, max_tokens=ROOM, temperature=0.0)
    request = probe.prepared(case)
    request.stopping.ignore_eos = True
    transcript = probe.call(GENERATE, request)
    reasons = {finished.reason for _, finished in finishes(transcript)}
    if reasons != {v1.FINISH_REASON_LENGTH} or _records(transcript) > ROOM:
        probe.skip("outputs that end at max_tokens do not end properly either")


def _records(transcript: Transcript) -> int:
    return sum(
        len(message.token.tokens)
        for message in transcript.messages
        if isinstance(message, v1.GenerateResponse)
    )


def _sequence_counts(declared: Declared) -> Iterable[Case]:
    yield simple_case(declared)
    yield from faults_of("GEN-012")(declared)


@check(
    "OE-CORE-GEN-012",
    advice="Read num_sequences by its presence: absent is 1, present zero is invalid, and the "
    "upper bound is the reported max_num_sequences.",
    table=_sequence_counts,
)
def sequence_count(probe: Probe, case: Case) -> None:
    """Without num_sequences there is one output; zero and too many are refused."""
    transcript = judge(probe, case)
    request = transcript.request
    if not isinstance(request, v1.GenerateRequest) or request.sampling.HasField("num_sequences"):
        return
    indexes = {finished.output_index for _, finished in finishes(transcript)}
    if len(indexes) > 1:
        probe.fail("one output", f"{len(indexes)} outputs", transcript)


def _zero_tokens(declared: Declared) -> Iterable[Case]:
    case = simple_case(declared)
    if isinstance(case.request, v1.GenerateRequest):
        case.request.stopping.max_tokens = 0
    return (case,)


@check(
    "OE-CORE-GEN-013",
    advice="Distinguish max_tokens = 0 from an absent field. Refuse it, or report "
    "accepts_zero_max_tokens and finish at once with LENGTH and no token.",
    table=_zero_tokens,
)
def zero_tokens(probe: Probe, case: Case) -> None:
    """Zero max_tokens is refused, or yields an empty output where that is reported."""
    transcript = judge(probe, case)
    for at, message in enumerate(transcript.messages):
        if not isinstance(message, v1.GenerateResponse):
            continue
        if message.HasField("token") and message.token.tokens:
            actual = f"{len(message.token.tokens)} token records"
            probe.fail("no token", actual, transcript, at)
        if message.HasField("finished") and message.finished.reason != v1.FINISH_REASON_LENGTH:
            probe.fail("reason LENGTH", f"reason {message.finished.reason}", transcript, at)
        if message.HasField("usage") and message.usage.completion_tokens:
            actual = f"{message.usage.completion_tokens}"
            probe.fail("completion_tokens 0", actual, transcript, at)


def _least_over_most(declared: Declared) -> Iterable[Case]:
    return [
        _least_and_most(declared, least, most)
        for least, most in ((5, 4), (2, 1), (2**32 - 1, 4), (4, 4))
    ]


def _least_and_most(declared: Declared, least: int, most: int) -> Case:
    case = simple_case(declared)
    if isinstance(case.request, v1.GenerateRequest):
        case.request.stopping.max_tokens = most
        case.request.stopping.min_tokens = least
    return case


def _any_least_and_most(declared: Declared) -> st.SearchStrategy[Case]:
    return st.builds(
        lambda most, more: _least_and_most(declared, most + more, most),
        st.integers(1, 12),
        st.integers(1, 2**31),
    )


@check(
    "OE-CORE-GEN-014",
    advice="Refuse min_tokens above max_tokens instead of lowering it or ignoring it.",
    table=_least_over_most,
    strategy=_any_least_and_most,
)
def least_over_most(probe: Probe, case: Case) -> None:
    """An output can't have to be longer than it may be."""
    judge(probe, case)


@check(
    "OE-CORE-GEN-015",
    advice="Compare max_tokens with the reported max_output_tokens and refuse what is above; do "
    "not clamp it.",
    table=faults_of("GEN-015"),
)
def output_over_limit(probe: Probe, case: Case) -> None:
    """More output than the engine reports to be possible is refused."""
    window = limits_of(probe.declared).max_context_tokens
    if window is None or window > MAX_SENT_TOKENS:
        probe.skip("an engine that wrongly accepts would fill its window", too_large=True)
    judge(probe, case)
