"""Laws about the end of an output."""

from __future__ import annotations

import pytest

from oe_wire import v1
from tests.conformance.laws.build import (
    CANCELLED,
    LENGTH,
    STOP,
    finished,
    found,
    request,
    rule,
    stream,
    tokens,
    usage,
)

UNSPECIFIED = v1.FINISH_REASON_UNSPECIFIED


def test_stop_names_its_match_and_others_none() -> None:
    """STOP without a match, LENGTH and CANCELLED with one are found."""
    assert rule("STREAM-014", stream(request(), finished(0, STOP, eos=2))) is True
    assert found("STREAM-014", stream(request(), tokens(0, [1]), finished(0, STOP))) == 1
    assert rule("STREAM-014", stream(request(), finished(0, LENGTH))) is True
    for reason in (LENGTH, CANCELLED):
        assert found("STREAM-014", stream(request(), finished(0, reason, eos=2))) == 0
    empty = finished(0, LENGTH)
    empty.finished.stop_match.SetInParent()
    assert found("STREAM-014", stream(request(), empty)) == 0


def test_a_match_of_a_newer_kind_is_a_match() -> None:
    """A variant this revision does not know counts as set; an empty one does not."""
    newer = finished(0, STOP)
    newer.finished.stop_match.MergeFromString(b"\xa2\x06\x01a")
    assert rule("STREAM-014", stream(request(), newer)) is True
    empty = finished(0, STOP)
    empty.finished.stop_match.SetInParent()
    assert found("STREAM-014", stream(request(), empty)) == 0


def test_other_reasons_are_not_judged() -> None:
    """No reason, or one of a newer revision, says nothing about a match."""
    assert rule("STREAM-014", stream(request(), finished(0, UNSPECIFIED))) is None
    assert rule("STREAM-014", stream(request(), tokens(0, [1]))) is None


def test_the_match_is_one_of_the_callers() -> None:
    """A text or token that the caller did not give is found; EOS never is."""
    asked = request(stop=["end", 9])
    assert rule("STREAM-015", stream(asked, finished(0, STOP, text="end"))) is True
    assert rule("STREAM-015", stream(asked, finished(0, STOP, token=9))) is True
    assert rule("STREAM-015", stream(asked, finished(0, STOP, eos=2))) is True
    assert found("STREAM-015", stream(asked, finished(0, STOP, text="en"))) == 0
    assert found("STREAM-015", stream(asked, finished(0, STOP, token=8))) == 0
    assert rule("STREAM-015", stream(asked, finished(0, STOP))) is None
    assert rule("STREAM-015", stream(asked, finished(0, LENGTH))) is None


def test_a_withheld_stop_token_is_not_sent() -> None:
    """The matched token among the records is found where it must have matched."""
    asked = request(stop=[9])
    end = finished(0, STOP, token=9)
    assert rule("STREAM-016", stream(asked, tokens(0, [1, 2]), end)) is True
    assert found("STREAM-016", stream(asked, tokens(0, [1]), tokens(0, [9]), end)) == 1
    explicit = request(stop=[9], include_stop_in_output=False)
    assert found("STREAM-016", stream(explicit, tokens(0, [9, 1]), end)) == 0


def test_a_stop_token_before_min_tokens_is_output() -> None:
    """Up to min_tokens the token may be sent; what came after is certain, a tail is not."""
    asked = request(stop=[9], min_tokens=2)
    end = finished(0, STOP, token=9)
    assert rule("STREAM-016", stream(asked, tokens(0, [9, 1, 2]), end)) is True
    assert rule("STREAM-016", stream(asked, tokens(0, [1, 9]), end)) is None
    assert found("STREAM-016", stream(asked, tokens(0, [1, 2, 9]), end)) == 0


def test_an_included_stop_token_is_last() -> None:
    """With include_stop_in_output the matched token is the last record."""
    asked = request(stop=[9], include_stop_in_output=True)
    end = finished(0, STOP, token=9)
    assert rule("STREAM-016", stream(asked, tokens(0, [1, 9]), end)) is True
    assert found("STREAM-016", stream(asked, tokens(0, [9, 1]), end)) == 1
    assert found("STREAM-016", stream(asked, end)) == 0


def test_stop_text_is_withheld_or_last() -> None:
    """Stop text split over messages is found where it must not be, and missed where it must."""
    end = finished(0, STOP, text="END")
    asked = request(stop=["END"])
    assert rule("STREAM-016", stream(asked, tokens(0, [1], "the "), end)) is True
    split = stream(asked, tokens(0, [1], "the EN"), tokens(0, [2], "D"), end)
    assert found("STREAM-016", split) == 2
    shown = request(stop=["END"], include_stop_in_output=True)
    assert found("STREAM-016", stream(shown, tokens(0, [1], "the "), end)) == 1
    kept = stream(shown, tokens(0, [1], "the EN"), tokens(0, [2], "D"), end)
    assert rule("STREAM-016", kept) is True
    early = request(stop=["END"], min_tokens=3)
    assert rule("STREAM-016", stream(early, tokens(0, [1], "END the"), end)) is None


def test_uncertain_ends_are_not_judged() -> None:
    """EOS, foreign matches and other reasons say nothing about the tail."""
    asked = request(stop=[9, "END"])
    ends = (
        finished(0, STOP, eos=2),
        finished(0, STOP, token=8),
        finished(0, STOP, text="other"),
        finished(0, LENGTH),
    )
    for end in ends:
        assert rule("STREAM-016", stream(asked, tokens(0, [9], "END"), end)) is None


def test_ignored_eos_ends_nothing() -> None:
    """An EOS stop is found unless the caller gave that very token, or a guide."""
    asked = request(stop=[9], ignore_eos=True)
    assert found("STREAM-017", stream(asked, finished(0, STOP, eos=2))) == 0
    assert rule("STREAM-017", stream(asked, finished(0, STOP, eos=9))) is True
    assert rule("STREAM-017", stream(asked, finished(0, STOP, token=9))) is True
    assert rule("STREAM-017", stream(asked, finished(0, LENGTH))) is True
    assert rule("STREAM-017", stream(request(), finished(0, STOP, eos=2))) is None
    guided = request(ignore_eos=True)
    guided.guided.regex = "a+"
    assert rule("STREAM-017", stream(guided, finished(0, STOP, eos=2))) is None


def test_no_stop_before_the_minimum() -> None:
    """Fewer records than min_tokens, even with a withheld one, are found."""
    asked = request(stop=[9], min_tokens=4)
    end = finished(0, STOP, token=9)
    assert found("STREAM-018", stream(asked, tokens(0, [1, 2]), end)) == 1
    assert rule("STREAM-018", stream(asked, tokens(0, [1, 2, 3]), end)) is True
    assert rule("STREAM-018", stream(asked, tokens(0, [1]), finished(0, LENGTH))) is None
    assert rule("STREAM-018", stream(request(), end)) is None
    impossible = request(min_tokens=4, max_tokens=2)
    assert rule("STREAM-018", stream(impossible, finished(0, STOP, eos=2))) is None


def test_withheld_tokens_of_a_stop_text_count() -> None:
    """A stop text may withhold several tokens; only the usage tells how many."""
    asked = request(stop=["END"], min_tokens=4)
    end = finished(0, STOP, text="END")
    assert rule("STREAM-018", stream(asked, tokens(0, [1]), end)) is None
    assert rule("STREAM-018", stream(asked, tokens(0, [1]), end, usage=usage(3, 4))) is True
    assert found("STREAM-018", stream(asked, tokens(0, [1]), end, usage=usage(3, 2))) == 1
    two = request(stop=["END"], min_tokens=4, n=2)
    other = [tokens(1, [1, 2, 3, 4]), finished(1, LENGTH)]
    call = stream(two, tokens(0, [1]), *other, end, usage=usage(3, 6))
    assert found("STREAM-018", call) == 3


def test_the_maximum_is_kept() -> None:
    """A record too many is found at its event, on an unfinished stream too."""
    asked = request(max_tokens=2)
    assert rule("STREAM-019", stream(asked, tokens(0, [1, 2]), finished(0))) is True
    assert found("STREAM-019", stream(asked, tokens(0, [1, 2]), tokens(0, [3]))) == 1
    assert rule("STREAM-019", stream(request(), tokens(0, [1]))) is None
    assert found("STREAM-019", stream(request(max_tokens=0), tokens(0, [1]))) == 0


@pytest.mark.parametrize("reason", [UNSPECIFIED, STOP])
def test_the_limit_is_named(reason: int) -> None:
    """An output that only the limit can have ended says LENGTH."""
    asked = request(max_tokens=2, ignore_eos=True)
    call = stream(asked, tokens(0, [1, 2]), finished(0, reason, eos=2))
    assert found("STREAM-019", call) == 1


def test_a_stop_at_the_limit_is_possible() -> None:
    """Where EOS, a condition or a guide may have matched last, STOP is right too."""
    guided = request(max_tokens=2, ignore_eos=True)
    guided.guided.regex = "a+"
    for asked in (request(max_tokens=2), request(max_tokens=2, ignore_eos=True, stop=[9]), guided):
        call = stream(asked, tokens(0, [1, 2]), finished(0, STOP, eos=2))
        assert rule("STREAM-019", call) is True


def test_an_output_that_runs_past_its_stop() -> None:
    """Records after a caller's stop are found; in one message with it they are not."""
    end = finished(0, LENGTH)
    by_token, by_text = request(stop=[9]), request(stop=["END"])
    assert found("STREAM-016", stream(by_token, tokens(0, [9]), tokens(0, [1]), end)) == 0
    assert rule("STREAM-016", stream(by_token, tokens(0, [9, 1]), end)) is None
    assert rule("STREAM-016", stream(by_token, tokens(0, [8]), tokens(0, [1]), end)) is None
    split = (tokens(0, [1], "E"), tokens(0, [2], "ND"), tokens(0, [3], "x"), end)
    assert found("STREAM-016", stream(by_text, *split)) == 1
    assert rule("STREAM-016", stream(by_text, *split[:2], end)) is None
    late = request(stop=[9, "END"], min_tokens=3)
    assert rule("STREAM-016", stream(late, tokens(0, [9]), *split)) is None
    cut = finished(0, CANCELLED)
    assert rule("STREAM-016", stream(by_token, tokens(0, [9]), tokens(0, [1]), cut)) is None
