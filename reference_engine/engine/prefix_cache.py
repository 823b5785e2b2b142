"""Reuse of full blocks by requests that begin with the same tokens.

Content is a tree of cached prefixes, found by digest and compared by tokens, keys and parent: a
collision of digests costs a reuse, never a wrong token. Several blocks may hold one content (two
requests computed it side by side); it stays cached as long as one of them does. A sequence holds
its prefix whole and frees it from the tail, so a cached prefix always has a cached parent.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference_engine.engine.block import BlockPool
from reference_engine.engine.block_hash import HashBlock, extra_keys, hash_block
from reference_engine.engine.cache_events import (
    BlocksRemoved,
    BlocksStored,
    CacheCleared,
    CacheEvents,
)

if TYPE_CHECKING:
    from reference_engine.engine.sequence import Sequence


@dataclass(slots=True, eq=False)
class Prefix:
    """The content of one full block behind its parent, and the blocks that hold it."""

    digest: bytes
    parent: "Prefix | None"
    token_ids: tuple[int, ...]
    keys: tuple[str, ...]
    blocks: list[int] = field(default_factory=list)

    def is_after(
        self, parent: "Prefix | None", token_ids: tuple[int, ...], keys: tuple[str, ...]
    ) -> bool:
        """Whether this is the content asked for, beyond an equal digest."""
        return self.parent is parent and self.token_ids == token_ids and self.keys == keys


class PrefixCache:
    """Finds and registers prefixes over the blocks of a pool; tells `events` of every change."""

    def __init__(
        self, pool: BlockPool, events: CacheEvents, hash_block: HashBlock = hash_block
    ) -> None:
        self.events = events
        self._pool = pool
        self._hash = hash_block
        self._prefixes: dict[bytes, Prefix] = {}
        self._by_block: dict[int, Prefix] = {}
        pool.on_evict = self._evict

    def match(self, sequence: "Sequence") -> list[Prefix]:
        """The longest cached beginning of a sequence that holds no blocks yet.

        At least one token is left to compute, and all whose logits are still wanted.
        """
        if sequence.request.cache.bypass:
            return []
        size = self._pool.block_size
        found: list[Prefix] = []
        for index in range(sequence.most_cached // size):
            prefix = self._find(sequence, index, found[-1] if found else None)
            if prefix is None:
                break
            found.append(prefix)
        return found

    def store(self, sequence: "Sequence") -> None:
        """Register the full blocks that the sequence has computed since the last call."""
        full = sequence.num_computed // self._pool.block_size
        start = len(sequence.prefixes)
        if full <= start or sequence.request.cache.bypass or not self._reachable(sequence):
            return
        new: list[Prefix] = []
        for index in range(start, full):
            prefix, is_new = self._found_or_made(sequence, index)
            if prefix is None:
                # Another content owns the digest: this one and what follows stay private.
                break
            block = sequence.blocks[index]
            if block not in self._by_block:
                self._by_block[block] = prefix
                prefix.blocks.append(block)
                self._pool.keep(block)
            sequence.prefixes.append(prefix)
            if is_new:
                new.append(prefix)
        self._tell_stored(new)

    def clear(self) -> None:
        """Forget all content. Blocks that are held stay with their holders, as private ones."""
        for block in self._by_block:
            self._pool.drop(block)
        self.forget()

    def forget(self) -> None:
        """Forget all content of a pool that has been reset."""
        had_content = bool(self._prefixes)
        self._prefixes.clear()
        self._by_block.clear()
        if had_content:
            self.events.add(CacheCleared())

    def prefixes(self) -> tuple[Prefix, ...]:
        """All cached content, parents before children."""
        return tuple(self._prefixes.values())

    def _reachable(self, sequence: "Sequence") -> bool:
        """Whether what the sequence has registered so far is cached still; `clear` forgets it."""
        if not sequence.prefixes:
            return True
        last = sequence.prefixes[-1]
        return self._prefixes.get(last.digest) is last

    def _found_or_made(self, sequence: "Sequence", index: int) -> tuple[Prefix | None, bool]:
        """The cached prefix of a full block, or a new one; None on a collision of digests."""
        parent = sequence.prefixes[-1] if sequence.prefixes else None
        token_ids, keys, digest = self._content(sequence, index)
        prefix = self._prefixes.get(digest)
        if prefix is None:
            prefix = self._prefixes[digest] = Prefix(digest, parent, token_ids, keys)
            return prefix, True
        return (prefix, False) if prefix.is_after(parent, token_ids, keys) else (None, False)

    def _find(self, sequence: "Sequence", index: int, parent: Prefix | None) -> Prefix | None:
        token_ids, keys, digest = self._content(sequence, index)
        prefix = self._prefixes.get(digest)
        if prefix is None or not prefix.is_after(parent, token_ids, keys):
            return None
        return prefix

    def _content(
        self, sequence: "Sequence", index: int
    ) -> tuple[tuple[int, ...], tuple[str, ...], bytes]:
        """Tokens, keys and digest of a block; `digests` has those of all blocks before it."""
        size = self._pool.block_size
        token_ids = tuple(sequence.token_ids[index * size : (index + 1) * size])
        keys = extra_keys(sequence.request.cache, index)
        if index == len(sequence.digests):
            before = sequence.digests[-1] if sequence.digests else b""
            sequence.digests.append(self._hash(before, token_ids, keys))
        return token_ids, keys, sequence.digests[index]

    def _evict(self, block: int) -> None:
        prefix = self._by_block.pop(block)
        prefix.blocks.remove(block)
        if not prefix.blocks:
            del self._prefixes[prefix.digest]
            self.events.add(BlocksRemoved((prefix.digest,)))

    def _tell_stored(self, new: list[Prefix]) -> None:
        """New prefixes of one sequence as events; a gap is content that was cached already."""
        runs: list[list[Prefix]] = []
        for prefix in new:
            if runs and prefix.parent is runs[-1][-1]:
                runs[-1].append(prefix)
            else:
                runs.append([prefix])
        for run in runs:
            self.events.add(stored(run, self._pool.block_size))


def stored(run: list[Prefix], block_size: int) -> BlocksStored:
    """The event that tells of consecutive prefixes."""
    parent = run[0].parent
    return BlocksStored(
        digests=tuple(prefix.digest for prefix in run),
        parent=parent.digest if parent else None,
        token_ids=tuple(token for prefix in run for token in prefix.token_ids),
        block_size=block_size,
        keys=tuple(prefix.keys for prefix in run),
    )
