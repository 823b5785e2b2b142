"""What an administrator does to a core, and faults of test runs: what stays, what comes back."""

import random
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.engine.core import INJECTED
from reference_engine.engine.operation import Operation
from reference_engine.engine.output import FinishReason, OutputFinished, RequestFailed
from tests.reference_engine.engine.fakes import (
    Collected,
    ScriptModel,
    build,
    collect,
    random_model,
    request,
    run,
)

REQUESTS = (
    request(b"first prompt of some blocks", seed=5, temperature=1.0, num_sequences=3),
    request(b"second", seed=6, temperature=1.0, ignore_eos=True, max_tokens=12),
    request(b"first prompt of some others", seed=7, ignore_eos=True, max_tokens=20),
)
ACTIONS = st.one_of(st.sampled_from(Operation), st.just("step"), st.just("add"))


def cached(built, prompt: bytes) -> int:
    (outcome,) = run(built.core, request(prompt, max_tokens=1))
    return outcome.finish().usage.cached_prompt_tokens


@cache
def alone() -> list[Collected]:
    """What each of REQUESTS gives in an engine of its own."""
    return [run(build(random_model()).core, one)[0] for one in REQUESTS]


@settings(max_examples=25, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_holding_changes_no_token(actions):
    """Whatever is held, released and cleared, each request gives what it gives alone."""
    built = build(random_model(), max_batched_tokens=16)
    core, waiting, opened, emitted = built.core, list(REQUESTS), [], []
    for action in [*actions, "add", "add", "add", Operation.RELEASE]:
        if isinstance(action, Operation):
            core.operate(action)
        elif action == "add" and waiting:
            opened.append(core.add(waiting.pop(0)))
        elif action == "step" and core.busy:
            emitted += core.step()
    while core.busy:
        emitted += core.step()
    for one, wanted in zip(opened, alone(), strict=True):
        found = collect(one, emitted)
        for index in range(one.request.num_sequences):
            assert found.ids(index) == wanted.ids(index)
            assert found.text(index) == wanted.text(index)
            assert found.finish(index).reason == wanted.finish(index).reason
    assert built.pool.num_used == 0


def test_hold_all():
    """Nothing runs, what has begun keeps its blocks, and repeating it changes nothing."""
    built = build(random_model())
    core = built.core
    core.add(request(max_tokens=30, ignore_eos=True))
    core.step()
    used = built.pool.num_used
    for _ in range(2):
        core.operate(Operation.HOLD_ALL)
        assert not core.busy
    core.add(request())
    assert not core.busy
    assert built.pool.num_used == used > 0
    assert core.load.running_requests == 2
    core.operate(Operation.RELEASE)
    assert core.busy


def test_hold_new():
    """Requests in the engine run on; later ones are open and queued, and run once released."""
    core = build(random_model()).core
    old = core.add(request(max_tokens=5, ignore_eos=True))
    core.operate(Operation.HOLD_NEW)
    new = [core.add(request(b"x", max_tokens=1)) for _ in range(2)]
    emitted = []
    while core.busy:
        emitted += core.step()
    assert len(collect(old, emitted).ids()) == 5
    assert {owner for owner, _ in emitted} == {old}
    assert (core.load.running_requests, core.load.queued_requests) == (2, 2)
    assert core.load.waiting_tokens == 2
    core.operate(Operation.RELEASE)
    while core.busy:
        emitted += core.step()
    assert [len(collect(one, emitted).ids()) for one in new] == [1, 1]
    assert core.load.running_requests == 0


def test_abort_while_held():
    """Held requests, begun or not, end as CANCELLED at once and do not come back."""
    built = build(random_model())
    core = built.core
    begun = core.add(request(max_tokens=30, ignore_eos=True))
    core.step()
    core.operate(Operation.HOLD_NEW)
    core.operate(Operation.HOLD_ALL)
    new = core.add(request(num_sequences=2))
    for one, outputs in ((begun, 1), (new, 2)):
        ends = [event for _, event in core.abort(one) if isinstance(event, OutputFinished)]
        assert [end.reason for end in ends] == [FinishReason.CANCELLED] * outputs
        assert ends[-1].usage is not None
    assert built.pool.num_used == 0
    core.operate(Operation.RELEASE)
    assert not core.busy


def test_a_fault_ends_held_requests():
    """After a fault of the engine nothing that was held is left to run."""
    core = build(random_model()).core
    core.operate(Operation.HOLD_NEW)
    opened = core.add(request())
    assert [(one, type(event)) for one, event in core.fail_all("broken")] == [
        (opened, RequestFailed)
    ]
    core.operate(Operation.RELEASE)
    assert not core.busy


def test_clear_cache():
    """Nothing is reused after it; a running request keeps its blocks and its tokens."""
    prompt = b"a prompt of five whole blocks"
    built = build(random_model())
    assert (cached(built, prompt), cached(built, prompt)) == (0, 28)
    running = request(prompt, max_tokens=20, ignore_eos=True)
    expected = run(build(random_model()).core, running)[0].ids()
    opened = built.core.add(running)
    emitted = list(built.core.step())
    used = built.pool.num_used
    built.core.operate(Operation.CLEAR_CACHE)
    assert built.pool.num_used == used
    assert built.scheduler.cache.prefixes() == ()
    while built.core.busy:
        emitted += built.core.step()
    assert collect(opened, emitted).ids() == expected
    assert cached(built, prompt) == 0


def test_fail_after():
    """The request ends with an error behind exactly so many tokens, all delivered and counted."""
    expected = run(build(random_model()).core, request(max_tokens=20, ignore_eos=True))[0].ids()
    for tokens in (0, 1, 7):
        built = build(random_model())
        opened = built.core.add(request(max_tokens=20, ignore_eos=True), fail_after=tokens)
        other = built.core.add(request(max_tokens=20, ignore_eos=True))
        emitted = []
        while built.core.busy:
            emitted += built.core.step()
        found = collect(opened, emitted)
        error = found.events[-1]
        assert isinstance(error, RequestFailed)
        assert error.message == INJECTED
        assert found.ids() == expected[:tokens]
        assert (error.usage and error.usage.completion_tokens) == (tokens or None)
        assert collect(other, emitted).ids() == expected
        assert built.pool.num_used == 0
        assert built.core.load.running_requests == 0


def test_fail_after_with_withheld_text():
    """Tokens withheld for a possible stop text are delivered before the error."""
    core = build(ScriptModel(b"stor-y", prompt_length=2)).core
    opened = core.add(request(stop_texts=("stop",), max_tokens=20), fail_after=3)
    emitted = []
    while core.busy:
        emitted += core.step()
    found = collect(opened, emitted)
    assert (found.text(), len(found.ids())) == ("sto", 3)
    assert isinstance(found.events[-1], RequestFailed)
    assert found.events[-1].usage.completion_tokens == 3


def test_fail_after_counts_all_outputs():
    """With several outputs the tokens of all count, and every output is over."""
    rng = random.Random(2)
    for _ in range(5):
        tokens = rng.randrange(1, 12)
        built = build(random_model())
        asked = request(num_sequences=3, ignore_eos=True, max_tokens=20)
        opened = built.core.add(asked, fail_after=tokens)
        emitted = []
        while built.core.busy:
            emitted += built.core.step()
        found = collect(opened, emitted)
        assert sum(len(found.ids(index)) for index in range(3)) == tokens
        assert found.events[-1].usage.completion_tokens == tokens
        assert built.pool.num_used == 0
