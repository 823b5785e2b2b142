"""Block pool and scheduler under random arrivals, steps and aborts, against a simple model."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reference_engine.engine.block import BlockPool
from reference_engine.engine.request import Request, Sampling, Scoring
from reference_engine.engine.scheduler import Row, Scheduler, SchedulerLimits
from reference_engine.engine.sequence import Sequence
from reference_engine.errors import EngineException

NUM_BLOCKS, BLOCK_SIZE, MAX_RUNNING, BUDGET = 12, 4, 4, 10
WINDOW = NUM_BLOCKS * BLOCK_SIZE


def make(order: int, prompt: int, *, scored: bool = False) -> Sequence:
    scoring = Scoring(prompt_start=0 if scored else None)
    request = Request((1,) * prompt, Sampling(0), scoring=scoring)
    sequence = Sequence(request, 0, order, None, WINDOW - prompt, [1] * prompt)
    if scored:
        sequence.prompt_scores = []
    return sequence


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, steps run, requests end or are aborted at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(NUM_BLOCKS, BLOCK_SIZE)
        self.scheduler = Scheduler(self.pool, SchedulerLimits(MAX_RUNNING, BUDGET))
        self.alive: list[Sequence] = []
        self.held: list[Sequence] = []
        self.order = 0

    @rule(prompt=st.integers(1, WINDOW), scored=st.booleans(), held=st.booleans())
    def arrive(self, prompt, scored, held):
        self.order += 1
        sequence = make(self.order, prompt, scored=scored)
        if held:
            self.held.append(sequence)
        else:
            self.alive.append(sequence)
            self.scheduler.add(sequence)

    @precondition(lambda self: self.held)
    @rule()
    def release(self):
        """Older sequences can come after younger ones, as outputs that waited for scores do."""
        sequence = self.held.pop()
        self.alive.append(sequence)
        self.scheduler.add(sequence)

    @precondition(lambda self: self.alive)
    @rule()
    def step(self):
        rows = self.scheduler.schedule()
        self.check_rows(rows)
        for row in rows:
            samples = row.samples
            row.sequence.num_computed += row.num_tokens
            if samples:
                row.sequence.prompt_scores = None
                row.sequence.token_ids.append(2)
                if len(row.sequence.token_ids) > WINDOW:
                    self.end(row.sequence)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def abort(self, data):
        self.end(data.draw(st.sampled_from(self.alive)))

    def end(self, sequence: Sequence) -> None:
        self.alive.remove(sequence)
        self.scheduler.remove(sequence)
        assert sequence.blocks == []

    def check_rows(self, rows: list[Row]) -> None:
        """A step has work within its budget, for running sequences, the oldest included."""
        assert rows
        assert sum(row.num_tokens for row in rows) <= BUDGET
        assert len({id(row.sequence) for row in rows}) == len(rows) <= MAX_RUNNING
        for row in rows:
            assert row.sequence in self.scheduler.running
            assert 1 <= row.num_tokens <= row.sequence.num_pending
            room = len(row.sequence.blocks) * BLOCK_SIZE
            assert row.sequence.num_computed + row.num_tokens <= room
        decodes = [row.num_tokens == row.sequence.num_pending == 1 for row in rows]
        oldest = min(self.scheduler.running, key=lambda one: one.order)
        assert any(row.sequence is oldest for row in rows) or all(decodes)

    @invariant()
    def blocks_are_held_once_or_free(self):
        held = [block for sequence in self.alive for block in sequence.blocks]
        assert len(held) == len(set(held))
        assert len(held) + self.pool.num_free == NUM_BLOCKS
        for block in range(NUM_BLOCKS):
            assert self.pool.holders(block) == held.count(block)

    @invariant()
    def every_sequence_is_in_one_queue(self):
        queued = [*self.scheduler.running, *self.scheduler.waiting]
        assert {id(one) for one in queued} == {id(one) for one in self.alive}
        assert len(queued) == len(self.alive)
        for sequence in self.scheduler.waiting:
            assert sequence.blocks == []
            assert sequence.num_computed == 0
        for queue in (self.scheduler.waiting, self.scheduler.running):
            orders = [sequence.order for sequence in queue]
            assert orders == sorted(orders)


SchedulerMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None
)
TestScheduler = SchedulerMachine.TestCase


def test_everything_ends():
    """Sequences that together exceed the blocks all reach their end, oldest first."""
    pool = BlockPool(NUM_BLOCKS, BLOCK_SIZE)
    scheduler = Scheduler(pool, SchedulerLimits(MAX_RUNNING, BUDGET))
    for order in range(6):
        scheduler.add(make(order, 9))
    ended = []
    for _ in range(2000):
        for row in scheduler.schedule():
            samples = row.samples
            row.sequence.num_computed += row.num_tokens
            if samples:
                row.sequence.token_ids.append(2)
                if len(row.sequence.token_ids) > WINDOW:
                    scheduler.remove(row.sequence)
                    ended.append(row.sequence.order)
        if len(ended) == 6:
            break
    assert ended == sorted(ended)
    assert len(ended) == 6
    assert scheduler.preemptions > 0
    assert pool.num_free == NUM_BLOCKS


def test_decodes_come_before_prefills():
    """A long prompt gets only what the decodes leave of the budget."""
    pool = BlockPool(64, BLOCK_SIZE)
    scheduler = Scheduler(pool, SchedulerLimits(MAX_RUNNING, BUDGET))
    short, long = make(1, 2), make(2, 40)
    scheduler.add(short)
    scheduler.schedule()
    short.num_computed = 2
    short.token_ids.append(2)
    scheduler.add(long)
    rows = scheduler.schedule()
    assert [(row.sequence.order, row.num_tokens) for row in rows] == [(1, 1), (2, BUDGET - 1)]


def test_pool_frees_in_reverse_order():
    """The tail of a sequence is reused before its head."""
    pool = BlockPool(4, BLOCK_SIZE)
    blocks = pool.take(4)
    pool.release(blocks)
    assert pool.take(4) == list(reversed(blocks))


def test_pool_refuses_a_double_release():
    """Releasing a free block is an error, not a second entry in the free list."""
    pool = BlockPool(2, BLOCK_SIZE)
    blocks = pool.take(1)
    pool.release(blocks)
    with pytest.raises(EngineException, match="nobody holds it"):
        pool.release(blocks)
    assert pool.num_free == 2
    assert pool.take(3) is None
