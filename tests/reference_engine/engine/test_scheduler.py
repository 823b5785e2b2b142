"""The scheduler: a state machine against a simple model, and the order of its decisions."""

import os
from random import Random

import pytest
from hypothesis import settings

from reference_engine.engine.block import BlockPool
from reference_engine.engine.request import CacheUse
from reference_engine.engine.scheduler import PROMPT_SCORE_CHUNK, Scheduler, SchedulerLimits
from reference_engine.errors import EngineException
from tests.reference_engine.engine.machine import (
    BLOCK_SIZE,
    BUDGET,
    MAX_RUNNING,
    NUM_BLOCKS,
    WINDOW,
    SchedulerMachine,
    WeakHashMachine,
    make,
)

SchedulerMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None
)
WeakHashMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
TestScheduler = SchedulerMachine.TestCase
TestWeakHash = WeakHashMachine.TestCase


@pytest.mark.parametrize("machine_type", [SchedulerMachine, WeakHashMachine])
def test_long_history(machine_type):
    """2,000 random events in a row, longer than Hypothesis draws, break no invariant."""
    machine, random = machine_type(), Random(7)
    for _ in range(int(os.environ.get("OE_MACHINE_STEPS", "2000"))):
        machine.random_event(random)
        machine.check()
    assert machine.scheduler.preemptions > 0
    assert machine.reused > 0
    machine.teardown()


def step(scheduler: Scheduler) -> list[tuple[int, int]]:
    """Run a step with sequences that never end; its rows as (order, tokens)."""
    rows = scheduler.schedule()
    found = [(row.sequence.order, row.num_tokens) for row in rows]
    for row in rows:
        samples = row.samples
        row.sequence.num_computed += row.num_tokens
        scheduler.cache.store(row.sequence)
        if samples:
            row.sequence.prompt_scores = None
            row.sequence.token_ids.append(2)
    return found


def scheduler_of(num_blocks: int = 64, running: int = MAX_RUNNING, budget: int = BUDGET):
    return Scheduler(BlockPool(num_blocks, BLOCK_SIZE), SchedulerLimits(running, budget))


def test_everything_ends():
    """Sequences that together exceed the blocks all reach their end, oldest first."""
    scheduler = scheduler_of(NUM_BLOCKS)
    for order in range(6):
        scheduler.add(make(order, (order,) * 9))
    ended = []
    for _ in range(2000):
        step(scheduler)
        for sequence in list(scheduler.running):
            if len(sequence.token_ids) > WINDOW:
                scheduler.remove(sequence)
                ended.append(sequence.order)
        if len(ended) == 6:
            break
    assert ended == sorted(ended)
    assert len(ended) == 6
    assert scheduler.preemptions > 0
    assert scheduler.pool.num_free == NUM_BLOCKS


def test_decodes_come_before_prefills():
    """A long prompt gets only what the decodes leave of the budget."""
    scheduler = scheduler_of()
    scheduler.add(make(1, (1,) * 2))
    step(scheduler)
    scheduler.add(make(2, (2,) * 40))
    assert step(scheduler) == [(1, 1), (2, BUDGET - 1)]
    assert (scheduler.num_decodes, scheduler.num_prefills) == (1, 1)


def test_higher_priority_is_first():
    """Among waiting sequences the higher priority enters first, equal ones in order of arrival."""
    scheduler = scheduler_of(running=1)
    scheduler.add(make(0, (1,)))
    step(scheduler)
    for order, priority in enumerate((0, 5, -3, 5, 0), start=1):
        scheduler.add(make(order, (1,), priority=priority))
    entered = []
    for _ in range(6):
        (sequence,) = scheduler.running
        entered.append(sequence.order)
        scheduler.remove(sequence)
        step(scheduler)
    assert entered == [0, 2, 4, 1, 5, 3]


def test_lower_priority_is_preempted():
    """Out of blocks, an older sequence of lower priority makes room for a younger, higher one."""
    scheduler = scheduler_of(num_blocks=5)
    low, high = make(1, (1,) * 5), make(2, (2,) * 5, priority=1)
    scheduler.add(low)
    scheduler.add(high)
    for _ in range(12):
        step(scheduler)
    assert (high.running, low.running) == (True, False)
    assert scheduler.preemptions > 0


def test_nothing_overtakes_the_head():
    """A large prompt that waits for room is not starved by small ones behind it."""
    scheduler = scheduler_of(num_blocks=8)
    small = make(0, (1,) * 4)
    scheduler.add(small)
    step(scheduler)
    scheduler.add(make(1, (2,) * 28))
    for order in range(2, 12):
        scheduler.add(make(order, (3,)))
    assert step(scheduler) == [(0, 1)]
    scheduler.remove(small)
    assert step(scheduler)[0] == (1, BUDGET)


def test_scored_prompts_share_a_budget():
    """Prompts with scores take few tokens a step together, and others behind them run."""
    scheduler = scheduler_of(num_blocks=256, budget=256)
    for order in (1, 2):
        scheduler.add(make(order, (order,) * 200, scored=True))
    scheduler.add(make(3, (3,) * 50))
    assert step(scheduler) == [(1, PROMPT_SCORE_CHUNK), (3, 50)]
    for sequence in scheduler.running:
        if sequence.order == 1:
            # 64 tokens give the scores of positions 0 to 64.
            sequence.prompt_scores += [None] * (PROMPT_SCORE_CHUNK + 1)
    assert step(scheduler) == [(3, 1), (1, PROMPT_SCORE_CHUNK)]


def test_tokens_before_the_scored_ones_are_free():
    """Only tokens whose logits are wanted count for the budget of scores."""
    scheduler = scheduler_of(num_blocks=256, budget=256)
    sequence = make(1, (1,) * 200, scored=True)
    sequence.prompt_scores = [None] * 101
    scheduler.add(sequence)
    assert step(scheduler) == [(1, 100 + PROMPT_SCORE_CHUNK)]


def test_outputs_share_the_prompt():
    """Forked outputs hold the prompt's blocks together and copy only the partial one."""
    scheduler = scheduler_of()
    parent, child = make(1, (1,) * 6, cache=CacheUse(bypass=True)), make(2, (1,) * 6)
    scheduler.add(parent)
    step(scheduler)
    assert scheduler.fork(parent, child)
    child.token_ids.append(3)
    assert child.blocks == parent.blocks
    assert scheduler.pool.num_used == 2
    first, second = scheduler.schedule()
    assert first.copy == (child.blocks[1], parent.blocks[1])
    assert second.copy is None
    assert child.blocks[0] == parent.blocks[0]
    assert scheduler.pool.num_used == 3


def test_fork_waits_for_a_place():
    """An output for which no place is free is queued and finds the prompt in the cache."""
    scheduler = scheduler_of(running=1)
    parent, child = make(1, (1,) * 9), make(2, (1,) * 9)
    scheduler.add(parent)
    step(scheduler)
    assert not scheduler.fork(parent, child)
    assert scheduler.waiting == [child]
    scheduler.remove(parent)
    assert step(scheduler) == [(2, 1)]


def test_never_fits():
    """A sequence larger than the whole cache is an error, not an endless wait."""
    scheduler = scheduler_of(num_blocks=2)
    scheduler.add(make(1, (1,) * 9))
    with pytest.raises(EngineException, match="3 blocks are wanted"):
        scheduler.schedule()
