"""Requests that are set aside: what they keep, what they give back, and that nothing changes."""

import random

from reference_engine.engine.output import FinishReason, OutputFinished
from tests.reference_engine.engine.fakes import build, collect, random_model, request, run

REQUESTS = (
    request(b"first prompt", seed=5, temperature=1.0, num_sequences=3, ignore_eos=True),
    request(b"second", seed=6, temperature=1.0, ignore_eos=True, max_tokens=12),
)


def test_parking_changes_no_token():
    """Requests set aside and taken up at any time give what they give when left alone."""
    expected = run(build(random_model()).core, *REQUESTS)
    choice = random.Random(3)
    for _ in range(5):
        built = build(random_model(), max_batched_tokens=16)
        opened = [built.core.add(one) for one in REQUESTS]
        parked: set[int] = set()
        emitted = []
        for _ in range(500):
            for number, one in enumerate(opened):
                if choice.random() < 0.3:
                    (built.core.resume if number in parked else built.core.park)(one)
                    parked ^= {number}
            if built.core.busy:
                emitted += built.core.step()
        for one in opened:
            built.core.resume(one)
        while built.core.busy:
            emitted += built.core.step()
        for one, wanted in zip(opened, expected, strict=True):
            found = collect(one, emitted)
            for index in range(one.request.num_sequences):
                assert found.ids(index) == wanted.ids(index)
                assert found.text(index) == wanted.text(index)
        assert built.pool.num_used == 0


def test_a_parked_request_holds_nothing():
    """Its blocks are free, nothing is left to do, and it counts as open and queued."""
    built = build(random_model())
    opened = built.core.add(request(ignore_eos=True, max_tokens=50))
    built.core.step()
    assert built.pool.num_used > 0
    built.core.park(opened)
    assert built.pool.num_used == 0
    assert not built.core.busy
    assert built.core.load.running_requests == 1
    assert built.core.load.queued_requests == 1
    built.core.resume(opened)
    built.core.resume(opened)
    assert built.core.busy
    assert len(built.scheduler.waiting) == 1


def test_abort_of_a_parked_request():
    """It ends as CANCELLED with its usage, and taking it up later does nothing."""
    built = build(random_model())
    opened = built.core.add(request(ignore_eos=True, max_tokens=50))
    built.core.step()
    built.core.park(opened)
    *_, (_, end) = built.core.abort(opened)
    assert isinstance(end, OutputFinished)
    assert end.reason is FinishReason.CANCELLED
    assert end.usage is not None
    assert end.usage.completion_tokens == 1
    built.core.resume(opened)
    assert not built.core.busy
    assert built.core.load.running_requests == 0
