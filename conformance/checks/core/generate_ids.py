"""Request ids: required, bounded, unique while active, free again afterwards (GEN-001 to 004)."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.history import run_history
from conformance.checks.core.judging import (
    BUSY,
    completed,
    engine_errors,
    faults_of,
    finishes,
    judge,
    outcome,
    send_cut,
    skip_uncertain,
)
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.oracle.limits import limits_of, window
from conformance.strategies import requests, simple_case, simple_request
from conformance.strategies.actions import histories
from conformance.strategies.faults import MAX_SENT_TOKENS
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Seconds for which the id of an ended stream may still be taken (requirement GEN-004's hint).
REUSE_SECONDS = 2.0
# A request that must outlast another call: this many seconds of generation, but at least
# MIN_LONG_TOKENS tokens, since short warm-ups overrate the time per token.
LONG_SECONDS = 3.0
MIN_LONG_TOKENS = 256
MAX_LONG_TOKENS = 4096
# Messages that must follow the answer to the duplicate before the first request counts as alive.
# One or two may have been on their way already.
LATER_MESSAGES = 3


def _valid_without_id(declared: Declared) -> st.SearchStrategy[Case]:
    def without_id(request: v1.GenerateRequest) -> Case:
        changed = v1.GenerateRequest()
        changed.CopyFrom(request)
        changed.request_id = ""
        return Case(changed)

    return requests(declared).map(without_id)


@check(
    "OE-CORE-GEN-001",
    advice="Check that request_id is not empty before the request reaches the scheduler.",
    table=faults_of("GEN-001"),
    strategy=_valid_without_id,
)
def empty_id(probe: Probe, case: Case) -> None:
    """An empty request id is refused, whatever else the request says."""
    judge(probe, case)


def _boundary_ids(declared: Declared) -> Iterable[Case]:
    longest = declared.max_request_id_bytes
    if longest > MAX_SENT_TOKENS:
        yield Case()
        return
    # One to four UTF-8 bytes a character: an engine that counts characters is off by up to four.
    for fill in ("x", "é", "語", "🙂"):
        for size in (longest, longest + 1):
            yield simple_case(declared, params={"id_bytes": size, "fill": fill})
    for fill in ("A b/c:%41+", "e\u0301"):
        yield simple_case(declared, params={"id_bytes": min(longest, 40), "fill": fill})


def _any_id(declared: Declared) -> st.SearchStrategy[Case]:
    # Without the separators, which no more print than control characters do.
    letters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
    # From 24 bytes on an id holds the whole fresh one, so that two never meet.
    longest = min(declared.max_request_id_bytes, MAX_SENT_TOKENS)
    sizes = st.integers(min(24, longest), longest + 8)
    return st.builds(
        lambda size, fill: simple_case(declared, params={"id_bytes": size, "fill": fill}),
        sizes,
        st.text(letters, min_size=1, max_size=4),
    )


@check(
    "OE-CORE-GEN-002",
    advice="Compare the length of request_id in UTF-8 bytes, not characters, with the reported "
    "limit (256 when unreported), and return the id unchanged: no trimming, no normalisation.",
    table=_boundary_ids,
    strategy=_any_id,
)
def id_length(probe: Probe, case: Case) -> None:
    """Ids up to the limit come back unchanged; longer ones are refused."""
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    request.request_id = sized_id(probe.fresh_id(), case.params["id_bytes"], case.params["fill"])
    transcript = judge(probe, Case(request, case.metadata))
    echoes = {m.request_id for m in transcript.messages if isinstance(m, v1.GenerateResponse)}
    if not echoes or echoes == {request.request_id}:
        return
    # An engine that spoils every id breaks the row about echoes; this row is about special ids.
    plain = probe.generate(simple_case(probe.declared))
    sent = plain.request.request_id if isinstance(plain.request, v1.GenerateRequest) else ""
    if {m.request_id for m in plain.messages if isinstance(m, v1.GenerateResponse)} != {sent}:
        probe.skip("plain ids are not echoed either")
    probe.fail("the request id echoed byte for byte", "another id", transcript)


def sized_id(start: str, size: int, fill: str) -> str:
    """An id of exactly `size` bytes: `start`, then whole copies and parts of `fill`, then 'x'."""
    made = start.encode()[:size].decode()
    while True:
        for letter in fill or "x":
            if len((made + letter).encode()) > size:
                return made + "x" * (size - len(made.encode()))
            made += letter


def _long_requests(declared: Declared) -> Iterable[Case]:
    return (simple_case(declared),)


def long_request(probe: Probe) -> v1.GenerateRequest:
    """A valid request that surely still runs when the next call is answered."""
    limits = limits_of(probe.declared)
    wanted = int(LONG_SECONDS / max(probe.pace.per_token, LONG_SECONDS / MAX_LONG_TOKENS))
    room = window(limits) - 32
    count = min(max(wanted, MIN_LONG_TOKENS), limits.max_output_tokens or room, room)
    request = simple_request(probe.declared, max_tokens=max(1, count), temperature=0.0)
    request.request_id = probe.fresh_id()
    request.stopping.ignore_eos = True
    return request


@check(
    "OE-CORE-GEN-003",
    advice="Look the id up among the active requests before admission and answer ALREADY_EXISTS; "
    "do not register the second request under the id of the first.",
    table=_long_requests,
    strategy=lambda _: histories(alone=False),
)
def duplicate_id(probe: Probe, case: Case) -> None:
    """A second request under an active id is refused and the first goes on, whatever else happens
    to it and to others (drawn histories).
    """
    if "actions" in case.params:
        run_history(probe, case, alone=False)
        return
    first = long_request(probe)
    live = probe.start(GENERATE, first)
    if not live.wait_event(1):
        describe_first = describe(probe.finish(live))
        probe.skip(f"the first request brought no event: {describe_first}")
    second = probe.prepared(case)
    second.request_id = first.request_id
    duplicate = send_cut(probe, case, second)
    patience = probe.pace.generate_limit(LATER_MESSAGES)
    alive = not live.done and live.wait_event(len(live.events) + LATER_MESSAGES, patience)
    stalled = not alive and not live.done
    live.cancel()
    transcript = probe.finish(live)
    if stalled:
        probe.fail("the first request untouched", f"no message for {patience:.0f} s", transcript)
    _judge_duplicate(probe, duplicate, transcript, alive=alive)


def _judge_duplicate(
    probe: Probe, duplicate: Transcript, first: Transcript, *, alive: bool
) -> None:
    if duplicate.rejected and duplicate.ending.code in BUSY:
        probe.skip(f"the engine was busy: {duplicate.ending.code.name}")
    already = duplicate.rejected and duplicate.ending.code is grpc.StatusCode.ALREADY_EXISTS
    if not alive and _spoilt(first):
        probe.fail("the first request untouched", f"it ended: {outcome(first)}", first)
    if already:
        return
    if not alive:
        probe.skip("the first request may have ended before the duplicate was answered")
    probe.fail("ALREADY_EXISTS for the duplicate", outcome(duplicate), duplicate)


def _spoilt(first: Transcript) -> bool:
    """Whether a request that nobody cancelled ended otherwise than by its own length."""
    if first.actions:
        return False
    reasons = {finished.reason for _, finished in finishes(first)}
    failed = bool(list(engine_errors(first))) or not first.ending.ok
    return failed or v1.FINISH_REASON_CANCELLED in reasons


def _repeatable(declared: Declared) -> Iterable[Case]:
    return (simple_case(declared), simple_case(declared, max_tokens=4))


@check(
    "OE-CORE-GEN-004",
    advice="Forget the id when the stream ends, at the latest two seconds later; an error or a "
    "missing clean-up step often leaves it in the table of active requests.",
    table=_repeatable,
)
def id_reused(probe: Probe, case: Case) -> None:
    """An id can be used again soon after its stream has ended."""
    request = probe.prepared(case)
    if not expect(request, case.metadata, probe.declared).accepted:
        probe.skip("the request is not certain to be accepted")
    first = probe.call(GENERATE, request, metadata=case.metadata)
    if not (first.ending.ok and finishes(first)):
        probe.skip(f"the first request did not end well: {describe(first)}")
    tries: list[Transcript] = []

    def taken() -> bool:
        tries.append(probe.call(GENERATE, request, metadata=case.metadata))
        return tries[-1].ending.code is not grpc.StatusCode.ALREADY_EXISTS

    if not probe.wait_until(taken, probe.pace.required(REUSE_SECONDS)):
        probe.fail("the id is free within 2 s of the end", "ALREADY_EXISTS", tries[-1])
    completed(probe, tries[-1])
