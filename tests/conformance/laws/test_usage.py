"""Laws about token counts."""

from __future__ import annotations

import grpc
import pytest

from conformance.wire.transcript import ActionKind
from oe_wire import v1
from tests.conformance.laws.build import (
    CANCELLED,
    LENGTH,
    STOP,
    ending,
    failed,
    finished,
    found,
    handover,
    request,
    rule,
    stream,
    tokens,
    usage,
    with_usage,
)

CUT = ending(grpc.StatusCode.CANCELLED, local=True)
ABORT = [ActionKind.ABORT]


def test_usage_comes_with_the_last_response() -> None:
    """Missing, early and doubled usage are found."""
    assert rule("USE-001", stream(request(), finished(0), usage=usage(3, 0))) is True
    assert found("USE-001", stream(request(), tokens(0, [1]), finished(0))) == 1
    early = stream(request(), with_usage(tokens(0, [1]), usage(3, 1)), finished(0))
    assert found("USE-001", early) == 0
    doubled = [with_usage(finished(0), usage(3, 0)), finished(1)]
    assert found("USE-001", stream(request(n=2), *doubled, usage=usage(3, 0))) == 0
    assert found("USE-001", stream(request(), handover())) == 0


def test_usage_before_the_end_is_found_on_cut_calls_too() -> None:
    """A cancelled call cannot show the final usage, but an early one."""
    early = [with_usage(tokens(0, [1]), usage(3, 1)), tokens(0, [2])]
    assert found("USE-001", stream(request(), *early, end=CUT)) == 0
    plain = stream(request(), tokens(0, [1]), tokens(0, [2]), end=CUT)
    assert rule("USE-001", plain) is True
    assert rule("USE-001", stream(request(), tokens(0, [1]), end=CUT)) is None
    assert rule("USE-001", stream(request(), failed())) is None
    assert rule("USE-001", stream(request(), end=CUT)) is None


@pytest.mark.parametrize(
    ("counted", "reason", "kept"),
    [(2, LENGTH, True), (1, LENGTH, False), (3, LENGTH, False), (3, STOP, True), (4, STOP, False)],
)
def test_completion_tokens_are_the_records(counted: int, reason: int, kept: bool) -> None:
    """A stopped output may have withheld one token, an output of full length none."""
    end = finished(0, reason, eos=2 if reason == STOP else None)
    call = stream(request(), tokens(0, [1, 2]), end, usage=usage(3, counted))
    if kept:
        assert rule("USE-002", call) is True
    else:
        assert found("USE-002", call) == 1


def test_completion_tokens_add_up_over_indexes() -> None:
    """All outputs count, each with its own withheld token."""
    asked = request(n=2)
    events = [tokens(0, [1]), tokens(1, [1, 2]), finished(0, STOP, eos=2)]
    for counted in (3, 5):
        end = finished(1, STOP, eos=2)
        assert rule("USE-002", stream(asked, *events, end, usage=usage(3, counted))) is True
    for counted in (2, 6):
        end = finished(1, STOP, eos=2)
        assert found("USE-002", stream(asked, *events, end, usage=usage(3, counted))) == 3


def test_only_whole_streams_are_counted() -> None:
    """Aborted, cancelled, failed, handed-over and continued requests are not."""
    counted = usage(3, 9)
    aborted = stream(request(), finished(0), usage=counted, actions=ABORT)
    assert rule("USE-002", aborted) is None
    assert rule("USE-002", stream(request(), finished(0, CANCELLED), usage=counted)) is None
    assert rule("USE-002", stream(request(), failed(), usage=counted)) is None
    assert rule("USE-002", stream(request(), handover(), usage=counted)) is None
    assert rule("USE-002", stream(request(), finished(0))) is None
    decode = request()
    decode.kv.session.session_id = "s"
    assert rule("USE-002", stream(decode, finished(0), usage=counted)) is None


def test_the_total_is_the_sum() -> None:
    """Any usage with another total is found."""
    assert rule("USE-003", stream(request(), finished(0), usage=usage(3, 4))) is True
    assert found("USE-003", stream(request(), failed(), usage=usage(3, 4, total=8))) == 0
    assert rule("USE-003", stream(request(), finished(0))) is None


@pytest.mark.parametrize("n", [1, 2])
def test_the_prompt_counts_once(n: int) -> None:
    """The count of token ids, not times the number of outputs."""
    ends = [finished(index) for index in range(n)]
    assert rule("USE-004", stream(request(n=n), *ends, usage=usage(3, 0))) is True
    ends = [finished(index) for index in range(n)]
    assert found("USE-004", stream(request(n=n), *ends, usage=usage(6, 0))) == n - 1


def test_prompts_of_unknown_length_are_not_judged() -> None:
    """Text, media and failures."""
    counted = usage(9, 0)
    assert rule("USE-004", stream(request(prompt="hi"), finished(0), usage=counted)) is None
    media = request()
    media.media.add(url="http://x")
    assert rule("USE-004", stream(media, finished(0), usage=counted)) is None
    assert rule("USE-004", stream(request(), failed(), usage=usage(0, 0))) is None


def test_parts_are_within_wholes() -> None:
    """More cached than prompt tokens and more reasoning than produced ones are found."""
    fine = usage(3, 2, cached_prompt_tokens=3, reasoning_tokens=2)
    assert rule("USE-005", stream(request(), finished(0), usage=fine)) is True
    for parts in ({"cached_prompt_tokens": 4}, {"reasoning_tokens": 3}):
        call = stream(request(), finished(0), usage=usage(3, 2, **parts))
        assert found("USE-005", call) == 0
    assert rule("USE-005", stream(request(), finished(0), usage=usage(3, 2))) is None


def test_a_late_failure_carries_usage() -> None:
    """After a token it must, before any it need not."""
    assert found("USE-008", stream(request(), tokens(0, [1]), failed())) == 1
    call = stream(request(), tokens(0, [1]), failed(), usage=usage(3, 1))
    assert rule("USE-008", call) is True
    assert rule("USE-008", stream(request(), failed())) is None
    assert rule("USE-008", stream(request(), tokens(0, text="a"), failed())) is None
    assert rule("USE-008", stream(request(), tokens(0, [1]), finished(0))) is None


def test_an_abort_is_accounted() -> None:
    """Fewer tokens than were sent, and no usage at all, are found."""
    events = [tokens(0, [1, 2]), finished(0, CANCELLED)]
    for counted in (2, 7):
        call = stream(request(), *events, usage=usage(3, counted), actions=ABORT)
        assert rule("USE-009", call) is True
    call = stream(request(), *events, usage=usage(3, 1), actions=ABORT)
    assert found("USE-009", call) == 1
    bare = [tokens(0, [1, 2]), finished(0, CANCELLED)]
    assert found("USE-009", stream(request(), *bare, actions=ABORT)) == 1
    error = [tokens(0, [1, 2]), failed(v1.ERROR_CODE_CANCELLED)]
    assert found("USE-009", stream(request(), *error, actions=ABORT)) == 1


def test_what_was_not_aborted_is_not_judged() -> None:
    """No abort, one that came too late, one before any token, and a cancel beside it."""
    events = [tokens(0, [1]), finished(0, CANCELLED)]
    assert rule("USE-009", stream(request(), *events)) is None
    late = stream(request(), tokens(0, [1]), finished(0, LENGTH), actions=ABORT)
    assert rule("USE-009", late) is None
    assert rule("USE-009", stream(request(), finished(0, CANCELLED), actions=ABORT)) is None
    both = [ActionKind.ABORT, ActionKind.CANCEL]
    assert rule("USE-009", stream(request(), *events, actions=both)) is None
