"""Scheduler and prefix cache beside a simple model of what every block holds.

The model writes into each slot the whole prefix that its keys and values depend on, so a block
that is lost, shared wrongly, overwritten or reused for other tokens shows as a wrong prefix.
"""

from collections import Counter
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reference_engine.engine.block import BlockPool
from reference_engine.engine.block_hash import hash_block
from reference_engine.engine.cache_events import (
    BlocksRemoved,
    BlocksStored,
    CacheCleared,
    CacheEvents,
)
from reference_engine.engine.prefix_cache import PrefixCache
from reference_engine.engine.request import CacheUse, Request, Sampling, Scoring
from reference_engine.engine.scheduler import (
    Row,
    Scheduler,
    SchedulerLimits,
)
from reference_engine.engine.sequence import Sequence

NUM_BLOCKS, BLOCK_SIZE, MAX_RUNNING, BUDGET = 12, 4, 4, 10
WINDOW = NUM_BLOCKS * BLOCK_SIZE

# Few tokens and salts, so that equal and nearly equal prefixes are common.
PROMPTS = st.one_of(
    st.integers(1, WINDOW).map(lambda length: (1,) * length),
    st.lists(st.integers(1, 2), min_size=1, max_size=WINDOW).map(tuple),
)
USES = [*[CacheUse()] * 3, CacheUse(bypass=True), CacheUse(salt="a"), CacheUse(keys=("lora",))]


def make(
    order: int, prompt: tuple[int, ...], *, scored: bool = False, index: int = 0, **asked
) -> Sequence:
    request = Request(
        prompt, Sampling(0), scoring=Scoring(prompt_start=0 if scored else None), **asked
    )
    sequence = Sequence(request, index, order, None, WINDOW - len(prompt), list(prompt))
    if scored and not index:
        sequence.prompt_scores = []
    return sequence


def weak_hash(parent: bytes, token_ids, keys: tuple[str, ...]) -> bytes:
    """Two digests for everything."""
    return bytes((hash_block(parent, token_ids, keys)[0] & 1,))


class CacheMirror:
    """What a listener to the events believes is cached."""

    def __init__(self, events: CacheEvents) -> None:
        self.digests: set[bytes] = set()
        events.subscribe(self.take)

    def take(self, batch) -> None:
        assert batch
        for event in batch:
            if isinstance(event, BlocksStored):
                assert event.parent is None or event.parent in self.digests
                assert not self.digests.intersection(event.digests)
                assert len(event.token_ids) == len(event.digests) * event.block_size
                assert len(event.keys) == len(event.digests)
                self.digests.update(event.digests)
            elif isinstance(event, BlocksRemoved):
                assert self.digests.issuperset(event.digests)
                self.digests.difference_update(event.digests)
            else:
                assert isinstance(event, CacheCleared)
                self.digests.clear()


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, steps run, requests end or are aborted, the cache is cleared, at any time."""

    hash_block = staticmethod(hash_block)

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(NUM_BLOCKS, BLOCK_SIZE)
        events = CacheEvents()
        self.mirror = CacheMirror(events)
        self.cache = PrefixCache(self.pool, events, self.hash_block)
        limits = SchedulerLimits(MAX_RUNNING, BUDGET)
        self.scheduler = Scheduler(self.pool, limits, self.cache)
        self.alive: list[Sequence] = []
        self.held: dict[Sequence, list[Sequence]] = {}
        self.slots: list[list[object]] = [[None] * BLOCK_SIZE for _ in range(NUM_BLOCKS)]
        self.order = 0
        self.reused = 0

    @rule(
        prompt=PROMPTS,
        scored=st.booleans(),
        outputs=st.integers(1, 3),
        priority=st.integers(0, 1),
        cache=st.sampled_from(USES),
    )
    def arrive(self, prompt, scored, outputs, priority, cache):
        self.add(prompt, scored, outputs, priority, cache)

    def add(self, prompt, scored, outputs, priority, cache) -> None:
        first, *others = [
            make(
                self.order + index,
                prompt,
                scored=scored,
                index=index,
                priority=priority,
                cache=cache,
            )
            for index in range(outputs)
        ]
        self.order += outputs
        self.alive.append(first)
        self.held[first] = others
        self.scheduler.add(first)

    @precondition(lambda self: self.alive)
    @rule(steps=st.integers(1, 12))
    def step(self, steps):
        for _ in range(steps):
            if self.alive:
                self.one_step()

    def one_step(self) -> None:
        rows = self.scheduler.schedule()
        self.check_rows(rows)
        for row in rows:
            self.reused += row.sequence.num_computed == row.sequence.cached_prompt_tokens != 0
            if row.copy is not None:
                source, target = row.copy
                self.slots[target] = list(self.slots[source])
        for row in rows:
            self.compute(row)
        sampling = [row.sequence for row in rows if row.samples]
        for row in rows:
            self.take_scores(row)
            row.sequence.num_computed += row.num_tokens
            self.cache.store(row.sequence)
        for sequence in sampling:
            sequence.prompt_scores = None
            others = self.held.pop(sequence, [])
            self.alive += others
            for one in (sequence, *(one for one in others if self.scheduler.fork(sequence, one))):
                self.advance(one)
        self.cache.events.flush()

    def compute(self, row: Row) -> None:
        sequence = row.sequence
        last = sequence.num_computed + row.num_tokens
        for position in range(sequence.num_computed, last):
            block = sequence.blocks[position // BLOCK_SIZE]
            assert self.pool.holders(block) == 1, "a shared block is written to"
            self.slots[block][position % BLOCK_SIZE] = self.prefix(sequence, position)

    def prefix(self, sequence: Sequence, position: int) -> object:
        return (sequence.request.cache.keys, tuple(sequence.token_ids[: position + 1]))

    def take_scores(self, row: Row) -> None:
        sequence = row.sequence
        if sequence.prompt_scores is None:
            return
        first = max(1, sequence.next_prompt_score())
        assert first - 1 >= sequence.num_computed
        last = min(sequence.num_computed + row.num_tokens, sequence.num_prompt - 1)
        sequence.prompt_scores += [None] * max(0, last + 1 - sequence.next_prompt_score())

    def advance(self, sequence: Sequence) -> None:
        sequence.token_ids.append(1 + (len(sequence.token_ids) + sequence.output_index) % 2)
        if len(sequence.token_ids) > WINDOW:
            self.end(sequence)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def abort(self, data):
        self.abort_request(data.draw(st.sampled_from(self.alive)).request)

    def abort_request(self, request: Request) -> None:
        for sequence in [one for one in self.alive if one.request is request]:
            self.held.pop(sequence, None)
            self.end(sequence)

    @rule()
    def clear_cache(self):
        self.cache.clear()
        self.cache.events.flush()
        assert self.cache.prefixes() == ()

    def random_event(self, random: Random) -> None:
        """One event as the rules have them, without Hypothesis."""
        kind = random.choices(("arrive", "step", "abort", "clear"), (4, 8, 1, 0.1))[0]
        if kind == "arrive" and len(self.alive) < 20:
            length = random.randint(1, WINDOW)
            prompt = random.choices((1, 2), (9, 1), k=length)
            cache = random.choice(
                (CacheUse(), CacheUse(), CacheUse(bypass=True), CacheUse(salt="a"))
            )
            self.add(tuple(prompt), random.random() < 0.2, random.randint(1, 3), 0, cache)
        elif kind == "clear":
            self.cache.clear()
            self.cache.events.flush()
        elif kind == "abort" and self.alive:
            self.abort_request(random.choice(self.alive).request)
        elif self.alive:
            self.one_step()

    def check(self) -> None:
        """All invariants."""
        self.holders_are_counted()
        self.computed_tokens_are_there()
        self.cached_content_is_there()
        self.every_sequence_is_in_one_queue()

    def end(self, sequence: Sequence) -> None:
        self.alive.remove(sequence)
        self.scheduler.remove(sequence)
        assert sequence.blocks == []

    def check_rows(self, rows: list[Row]) -> None:
        """A step has work within its budgets, for running sequences, the first included."""
        assert rows
        assert sum(row.num_tokens for row in rows) <= BUDGET
        assert len({id(row.sequence) for row in rows}) == len(rows) <= MAX_RUNNING
        assert rows[0].sequence.running
        for row in rows:
            assert row.sequence in self.scheduler.running
            assert 1 <= row.num_tokens <= row.sequence.num_pending
            room = len(row.sequence.blocks) * BLOCK_SIZE
            assert row.sequence.num_computed + row.num_tokens <= room
        first = min(self.scheduler.running, key=lambda one: one.rank)
        decodes = [row.num_tokens == row.sequence.num_pending == 1 for row in rows]
        assert any(row.sequence is first for row in rows) or all(decodes)

    @invariant()
    def holders_are_counted(self):
        """Every block is held as often as sequences list it, or is in the free list once."""
        listed = Counter(block for sequence in self.alive for block in sequence.blocks)
        free = self.pool.free_blocks()
        assert len(free) == len(set(free)) == self.pool.num_free
        assert self.pool.num_free + self.pool.num_used == NUM_BLOCKS
        assert sorted([*listed, *free]) == list(range(NUM_BLOCKS))
        for block in range(NUM_BLOCKS):
            assert self.pool.holders(block) == listed[block]

    @invariant()
    def computed_tokens_are_there(self):
        """Each sequence finds its own prefix in every slot that it has computed or reused."""
        for sequence in self.alive:
            assert sequence.block_table.tolist() == sequence.blocks
            for position in range(sequence.num_computed):
                block = sequence.blocks[position // BLOCK_SIZE]
                found = self.slots[block][position % BLOCK_SIZE]
                assert found == self.prefix(sequence, position)

    @invariant()
    def cached_content_is_there(self):
        """Cached prefixes have cached parents and blocks with their content, as events told."""
        prefixes = self.cache.prefixes()
        assert {prefix.digest for prefix in prefixes} == self.mirror.digests
        blocks = [block for prefix in prefixes for block in prefix.blocks]
        assert len(blocks) == len(set(blocks))
        for place, prefix in enumerate(prefixes):
            assert prefix.parent is None or prefix.parent in prefixes[:place]
            assert prefix.blocks
            tokens, above = prefix.token_ids, prefix.parent
            while above is not None:
                tokens, above = above.token_ids + tokens, above.parent
            for block in prefix.blocks:
                assert self.slots[block][-1][1] == tokens

    @invariant()
    def every_sequence_is_in_one_queue(self):
        queued = [*self.scheduler.running, *self.scheduler.waiting]
        assert {id(one) for one in queued} == {id(one) for one in self.alive}
        assert len(queued) == len(self.alive)
        for sequence in self.scheduler.waiting:
            assert sequence.blocks == []
            assert (sequence.num_computed, sequence.running) == (0, False)
        for queue in (self.scheduler.waiting, self.scheduler.running):
            ranks = [sequence.rank for sequence in queue]
            assert ranks == sorted(ranks)

    def teardown(self) -> None:
        """Whatever is left ends on its own, and every block is free again."""
        for _ in range(5000):
            if not self.alive:
                break
            self.one_step()
        assert not self.alive
        assert self.pool.num_free == NUM_BLOCKS


class WeakHashMachine(SchedulerMachine):
    """The same with digests that collide all the time."""

    hash_block = staticmethod(weak_hash)
