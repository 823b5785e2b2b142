"""Laws about the shape and order of events."""

from __future__ import annotations

import grpc
import pytest

from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1
from tests.conformance.laws.build import (
    DECLARED,
    aggregated,
    ending,
    failed,
    finished,
    found,
    handover,
    prompt,
    request,
    rule,
    stream,
    tokens,
)

ASKED = v1.ResponseOptions(return_prompt_logprobs=True)
CUT = ending(grpc.StatusCode.CANCELLED, local=True)


def good(n: int = 1) -> Transcript:
    """A stream of n outputs with two tokens each."""
    events = [tokens(index, [1], "a") for index in range(n)]
    events += [tokens(index, [2], "b") for index in range(n)]
    return stream(request(n=n), *events, *(finished(index) for index in range(n)))


LAWS_ON_GOOD = ["001", "002", "003", "005", "006", "007", "012", "013", "024"]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("law", LAWS_ON_GOOD)
def test_a_good_stream_keeps_the_law(law: str, n: int) -> None:
    """A complete, well-formed stream is ruled True."""
    assert rule(f"STREAM-{law}", good(n)) is True


@pytest.mark.parametrize("law", [*LAWS_ON_GOOD, "008", "011"])
def test_a_rejection_is_not_judged(law: str) -> None:
    """Laws about streams say nothing where no stream came."""
    refusal = stream(request(), end=ending(grpc.StatusCode.INVALID_ARGUMENT))
    assert rule(f"STREAM-{law}", refusal) is None


def test_another_id_is_found_at_its_event() -> None:
    """The one response with another id is named."""
    other = tokens(0, [2], "b")
    other.request_id = "r2"
    assert found("STREAM-001", stream(request(), tokens(0, [1], "a"), other)) == 1


def test_an_empty_id_is_not_judged() -> None:
    """An engine that took a request without an id has nothing to echo."""
    nameless = request()
    nameless.request_id = ""
    assert rule("STREAM-001", stream(nameless, finished(0))) is None


def test_an_empty_event_is_found_and_a_future_one_is_not() -> None:
    """No variant is a breach, unless a field of a newer revision is there."""
    empty = v1.GenerateResponse()
    assert found("STREAM-002", stream(request(), tokens(0, [1]), empty)) == 1
    future = v1.GenerateResponse()
    future.MergeFromString(b"\xa2\x06\x01a")  # field 100, one byte
    assert rule("STREAM-002", stream(request(), tokens(0, [1]), future)) is True


def test_indexes_must_be_present_and_in_range() -> None:
    """Absent, and too large, are found; index 0 must be present too."""
    assert found("STREAM-003", stream(request(), tokens(0, [1]), tokens(None, [1]))) == 1
    assert found("STREAM-003", stream(request(), tokens(0, [1]), finished(None))) == 1
    assert found("STREAM-003", stream(request(n=2), tokens(1, [1]), tokens(2, [1]))) == 1
    assert found("STREAM-003", stream(request(), finished(1))) == 0


def test_finishes_are_counted_per_index() -> None:
    """No finish and two finishes of one index are found."""
    assert found("STREAM-005", stream(request(n=2), finished(0))) is None
    assert found("STREAM-005", stream(request(), finished(0), finished(0))) == 1


def test_finishes_are_counted_on_undisturbed_successes_only() -> None:
    """Aborted, cancelled, failed and unparsed calls are others' business."""
    cut = stream(request(), tokens(0, [1]), end=CUT, actions=[ActionKind.CANCEL])
    assert rule("STREAM-005", cut) is None
    assert rule("STREAM-005", stream(request(), failed())) is None
    aborted = stream(request(n=2), finished(0), actions=[ActionKind.ABORT])
    assert rule("STREAM-005", aborted) is None
    assert rule("STREAM-005", stream(None, finished(0))) is None


def test_a_handover_counts_only_where_the_phase_is_certain() -> None:
    """A PrefillReady for a plain request is a breach of an aggregated engine alone."""
    call = stream(request(), handover())
    assert rule("STREAM-005", call, DECLARED) is None
    assert found("STREAM-005", call, aggregated()) is None
    phased = request()
    phased.extra.update({"request_type": "context_only"})
    assert rule("STREAM-005", stream(phased, handover()), aggregated()) is None


def test_nothing_about_a_finished_index() -> None:
    """Tokens and finishes after the finish of the same index, also on a cancelled call."""
    late = stream(request(n=2), finished(0), tokens(1, [1]), tokens(0, [1]), finished(1))
    assert found("STREAM-006", late) == 2
    cut = stream(request(), finished(0), finished(0), end=CUT, actions=[ActionKind.CANCEL])
    assert found("STREAM-006", cut) == 1
    assert rule("STREAM-006", stream(request(), tokens(0, [1]), end=CUT)) is None


def test_prompt_output_once_and_on_demand() -> None:
    """Not asked for, and twice, are found."""
    assert found("STREAM-007", stream(request(), prompt(5, 6, 7), finished(0))) == 0
    twice = stream(request(response=ASKED), prompt(5), prompt(6, 7), finished(0))
    assert found("STREAM-007", twice) == 1
    once = stream(request(response=ASKED), prompt(5, 6, 7), finished(0))
    assert rule("STREAM-007", once) is True


def test_prompt_output_first() -> None:
    """A PromptOutput after a token is found."""
    sent = request(response=ASKED)
    assert found("STREAM-008", stream(sent, tokens(0, [1]), prompt(5, 6, 7), finished(0))) == 1
    assert rule("STREAM-008", stream(sent, prompt(5, 6, 7), tokens(0, [1]), finished(0))) is True
    assert rule("STREAM-008", good()) is None


def test_an_error_is_last_and_ends_ok() -> None:
    """An event after it, and a status beside it, are found."""
    assert rule("STREAM-011", stream(request(), tokens(0, [1]), failed())) is True
    assert found("STREAM-011", stream(request(), failed(), finished(0))) == 1
    internal = ending(grpc.StatusCode.INTERNAL)
    assert found("STREAM-011", stream(request(), tokens(0, [1]), failed(), end=internal)) == 1
    lost = ending(grpc.StatusCode.UNAVAILABLE, local=True)
    assert rule("STREAM-011", stream(request(), failed(), end=lost)) is True
    assert rule("STREAM-011", good()) is None


def test_nothing_follows_the_end() -> None:
    """An event after the last terminal event of each kind is found."""
    assert found("STREAM-012", stream(request(), finished(0), tokens(0, [1]))) == 1
    assert found("STREAM-012", stream(request(), handover(), finished(0))) == 1
    assert found("STREAM-012", stream(request(), failed(), failed())) == 1
    two = stream(request(n=2), finished(1), finished(0), tokens(1, [1]))
    assert found("STREAM-012", two) == 2
    assert rule("STREAM-012", stream(request(n=2), finished(0), end=CUT)) is None


def test_the_end_is_followed_by_ok() -> None:
    """Another status, or a stream left open until the deadline, is found."""
    aborted = ending(grpc.StatusCode.ABORTED)
    assert found("STREAM-012", stream(request(), finished(0), end=aborted)) == 0
    expired = ending(grpc.StatusCode.DEADLINE_EXCEEDED, local=True, seconds=30.0)
    assert found("STREAM-012", stream(request(), finished(0), end=expired)) == 0
    soon = ending(grpc.StatusCode.DEADLINE_EXCEEDED, local=True, seconds=0.2)
    assert rule("STREAM-012", stream(request(), finished(0), end=soon)) is True


def test_ok_means_finished() -> None:
    """An OK end without a terminal event is found, after an abort too, but not after a cancel."""
    assert found("STREAM-013", stream(request(n=2), finished(1))) is None
    assert found("STREAM-013", stream(request())) is None
    assert found("STREAM-013", stream(request(), actions=[ActionKind.ABORT])) is None
    assert rule("STREAM-013", stream(request(), actions=[ActionKind.CANCEL])) is None
    assert rule("STREAM-013", stream(request(n=2), failed())) is True
    assert rule("STREAM-013", stream(request(), handover())) is True


def test_an_empty_token_output_is_found() -> None:
    """Text alone and records alone are enough, neither is a breach."""
    assert (
        found("STREAM-024", stream(request(), tokens(0, [1]), tokens(0, text="a"), tokens(0))) == 2
    )
    assert rule("STREAM-024", stream(request(), finished(0))) is None
