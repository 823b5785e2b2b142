"""A redacted call says the same to every law that does not read content."""

from __future__ import annotations

import pytest

from conformance.laws import LAWS, judge
from conformance.laws.law import Finding
from conformance.wire.payload import without_payload
from conformance.wire.transcript import Transcript
from oe_wire import v1
from tests.conformance.laws.build import aggregated, finished, request, stream, tokens, usage
from tests.conformance.laws.test_mutations import (
    LENGTH,
    OTHER_MUTATIONS,
    STATUSES,
    STREAM_MUTATIONS,
    _mutated,
    aborted,
    broken,
    plain,
    refused,
    rich,
)

CALLS = [
    *(make() for make in (rich, plain, broken, aborted, refused)),
    *map(_mutated, STREAM_MUTATIONS + OTHER_MUTATIONS),
    *(call for call, _ in STATUSES),
]
SECRET = "tulips"


def findings(call: Transcript) -> set[str]:
    rulings = judge(call, aggregated())
    return {requirement for requirement, ruling in rulings.items() if isinstance(ruling, Finding)}


@pytest.mark.parametrize("call", CALLS)
def test_laws_that_do_not_read_content_find_the_same(call: Transcript) -> None:
    """And those that do judge nothing."""
    readers = {requirement for requirement, law in LAWS.items() if law.reads_content}
    judged = judge(without_payload(call), aggregated())
    assert not readers & set(judged)
    assert findings(without_payload(call)) == findings(call) - readers


def test_nothing_of_the_content_is_left() -> None:
    """Not in the request, the answers, the metadata, the status or unknown fields."""
    sent = request(prompt=f"about {SECRET}", stop=[SECRET])
    sent.extra["note"] = SECRET
    sent.response.output_candidates.token_ids.ids.append(4711)
    answers = [tokens(0, [4711], SECRET), finished(0, LENGTH)]
    call = stream(sent, *answers, usage=usage(3, 1))
    raw = v1.GenerateResponse.FromString(answers[0].SerializeToString() + b"\xba\x3e\x06tulips")
    events = (call.events[0].__class__(0.0, raw), *call.events[1:])
    metadata = (("x-note", SECRET), ("x-note-bin", SECRET.encode()))
    noted = stream(sent, *answers, usage=usage(3, 1))
    noted = noted.__class__(
        noted.method,
        noted.request,
        noted.request_bytes,
        metadata,
        events,
        noted.ending.__class__(1.0, noted.ending.code, SECRET, noted.ending.origin, metadata),
    )
    hidden = without_payload(noted)
    assert SECRET not in repr(hidden)
    assert SECRET.encode() not in hidden.request_bytes
    assert "4711" not in repr(hidden)
    answer = hidden.messages[0]
    assert isinstance(answer, v1.GenerateResponse)
    assert len(answer.token.text) == len(SECRET)
    assert [key for key, _ in hidden.metadata] == ["x-note", "x-note-bin"]
