"""Laws about prompt records."""

from __future__ import annotations

from conformance.wire.transcript import Transcript
from oe_wire import v1
from tests.conformance.laws.build import finished, found, info, prompt, request, rule, stream


def call(*records: int | v1.TokenInfo, start: int | None = None) -> Transcript:
    """Prompt 5 6 7 and the records that came back for it."""
    options = v1.ResponseOptions(return_prompt_logprobs=True, prompt_logprob_start=start)
    return stream(request([5, 6, 7], response=options), prompt(*records), finished(0))


def test_the_first_prompt_token_is_bare() -> None:
    """A logprob, a rank or candidates on it are found."""
    rest = (info(6, -1.0), info(7, -2.0))
    assert rule("STREAM-009", call(5, *rest)) is True
    for first in (info(5, -1.0), info(5, rank=1), info(5, candidates=[(5, 1)])):
        assert found("STREAM-009", call(first, *rest)) == 0


def test_a_later_start_has_no_first_token() -> None:
    """From position 1 on, every record may have a past."""
    assert rule("STREAM-009", call(info(6, -1.0), info(7, -1.0), start=1)) is None
    assert rule("STREAM-009", call()) is None
    assert rule("STREAM-009", stream(request(), finished(0))) is None


def test_prompt_records_are_the_prompt() -> None:
    """Too few, too many, swapped and shifted records are found."""
    assert rule("STREAM-010", call(5, 6, 7)) is True
    assert rule("STREAM-010", call(6, 7, start=1)) is True
    assert rule("STREAM-010", call(start=3)) is True
    for records in ((5, 6), (5, 6, 7, 8), (5, 7, 6), (6, 7)):
        assert found("STREAM-010", call(*records)) == 0
    assert found("STREAM-010", call(5, 6, 7, start=1)) == 0


def test_only_prompts_of_known_ids_are_compared() -> None:
    """Text prompts, media and a start beyond the prompt are not judged."""
    assert rule("STREAM-010", call(start=4)) is None
    options = v1.ResponseOptions(return_prompt_logprobs=True)
    text = stream(request(prompt="hello", response=options), prompt(1), finished(0))
    assert rule("STREAM-010", text) is None
    media = request([5], response=options)
    media.media.add(url="http://x")
    assert rule("STREAM-010", stream(media, prompt(1, 2), finished(0))) is None
