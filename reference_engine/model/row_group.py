"""Neighbouring rows of a batch that attention computes together on a CPU.

All tensors of a group are laid out before the first layer, so that a layer is eight calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.model.batch import Batch
from reference_engine.model.tiles import KEY_TILE, ROW_MULTIPLE, num_tiles

GROUP_TILES = 32
"""Tiles of one call: 1.5 MB of SmolLM2's keys; 8 and 16 were slower by 10 to 25 %."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the layers of a step write and read again, float32.

    q and out [n, heads, head_dim], n with the padding of the batch; gathered [any, head_dim], the
    keys and then the values of one group after the other.
    """

    q: Tensor
    out: Tensor
    gathered: Tensor


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of equal query length. A pair is a row and a KV head; query heads that share the KV
    head are further query rows of the pair, so that no key is repeated.

    q and out are views of the memory of the step: [rows, kv_heads, length, shared, head_dim]. The
    query rows of a pair are padded with zeros to a multiple of 4; `..._inside` are views without
    the padding, of the shape of q.
    """

    scale: float
    """Of the scores."""

    index: Tensor
    """[pairs * blocks] which blocks of one head are gathered."""
    gathered: Tensor
    """[pairs * blocks, block_size * head_dim]"""
    keys: Tensor
    """[pairs, head_dim, keys], a view of what was gathered."""
    values: tuple[Tensor, ...]
    """[pairs, KEY_TILE, head_dim] each, likewise."""
    q: Tensor
    queries: Tensor
    """[pairs, query rows, head_dim]"""
    queries_inside: Tensor
    scores: Tensor
    """[pairs, query rows, keys]"""
    bias: Tensor
    """Likewise: minus infinity where the query must not see the key, else 0."""
    weights: Tensor
    """Likewise."""
    weight_tiles: tuple[Tensor, ...]
    """[pairs, query rows, KEY_TILE] each"""
    sums: Tensor
    """[pairs, query rows, head_dim]"""
    sums_inside: Tensor
    out: Tensor

    def attend(self, keys: Tensor, values: Tensor) -> None:
        """From q to out; keys and values [blocks * kv_heads, block_size * head_dim] of a layer."""
        torch.mul(self.q, self.scale, out=self.queries_inside)
        self._gather(keys)
        torch.baddbmm(self.bias, self.queries, self.keys, out=self.scores)
        torch.softmax(self.scores, dim=-1, out=self.weights)
        self._gather(values)
        torch.bmm(self.weight_tiles[0], self.values[0], out=self.sums)
        for weights, tile in zip(self.weight_tiles[1:], self.values[1:], strict=True):
            self.sums.baddbmm_(weights, tile)
        self.out.copy_(self.sums_inside)

    def _gather(self, blocks: Tensor) -> None:
        if blocks.dtype == self.gathered.dtype:
            torch.index_select(blocks, 0, self.index, out=self.gathered)
        else:
            self.gathered.copy_(blocks.index_select(0, self.index))


def cut(batch: Batch) -> list[range]:
    """Neighbours of equal query length, together GROUP_TILES at most unless one row has more."""
    groups: list[range] = []
    most = 0
    for row, (length, context) in enumerate(
        zip(batch.query_lengths, batch.context_lengths, strict=True)
    ):
        tiles = num_tiles(context)
        most = max(most, tiles)
        group = groups[-1] if groups else range(0)
        fits = (len(group) + 1) * most <= GROUP_TILES
        if group and fits and batch.query_lengths[group[0]] == length:
            groups[-1] = range(group.start, row + 1)
        else:
            groups.append(range(row, row + 1))
            most = tiles
    return groups


def num_gathered(batch: Batch, rows: range, block_size: int) -> int:
    """Keys of one head that a group gathers: whole blocks for whole tiles of each row."""
    return len(rows) * _num_blocks(batch, rows, block_size) * block_size


def _num_blocks(batch: Batch, rows: range, block_size: int) -> int:
    keys = num_tiles(max(batch.context_lengths[rows.start : rows.stop])) * KEY_TILE
    return -(-keys // block_size)


def row_group(
    batch: Batch, rows: range, kv_heads: int, block_size: int, memory: Memory
) -> RowGroup:
    """Lay out the tensors of some rows."""
    heads, head_dim = memory.q.shape[1:]
    length, shared = batch.query_lengths[rows.start], heads // kv_heads
    pairs, size = len(rows) * kv_heads, length * shared
    padded = size + -size % ROW_MULTIPLE
    inside = (len(rows), kv_heads, length, shared)
    first = sum(batch.query_lengths[: rows.start])
    tokens = slice(first, first + len(rows) * length)

    def of_tokens(x: Tensor) -> Tensor:
        return x[tokens].view(len(rows), length, kv_heads, shared, head_dim).transpose(1, 2)

    def within(x: Tensor) -> Tensor:
        return x.view(len(rows), kv_heads, padded, -1)[:, :, :size].view(*inside, -1)

    blocks = _num_blocks(batch, rows, block_size)
    visible = _bias(batch.context_lengths[rows.start : rows.stop], length)
    keys = visible.shape[-1]
    bias = torch.zeros(pairs, padded, keys)
    within(bias).copy_(visible)
    gathered = memory.gathered[: pairs * blocks * block_size]
    by_key = gathered.view(pairs, -1, head_dim)[:, :keys]
    queries = torch.zeros(pairs, padded, head_dim)
    sums, weights = torch.empty(pairs, padded, head_dim), torch.empty(pairs, padded, keys)
    return RowGroup(
        scale=head_dim**-0.5,
        index=_index(batch.block_tables[rows.start : rows.stop], blocks, kv_heads),
        gathered=gathered.view(pairs * blocks, -1),
        keys=by_key.transpose(1, 2),
        values=torch.split(by_key, KEY_TILE, dim=1),
        q=of_tokens(memory.q),
        queries=queries,
        queries_inside=within(queries),
        scores=torch.empty(pairs, padded, keys),
        bias=bias,
        weights=weights,
        weight_tiles=torch.split(weights, KEY_TILE, dim=2),
        sums=sums,
        sums_inside=within(sums),
        out=of_tokens(memory.out),
    )


def _index(tables: Tensor, blocks: int, kv_heads: int) -> Tensor:
    """Of the first blocks of each row, whatever lies behind its context; [rows, head, block]."""
    known = tables[:, :blocks]
    missing = blocks - known.shape[1]
    known = torch.nn.functional.pad(known, (0, missing))
    return (known[:, None] * kv_heads + torch.arange(kv_heads)[:, None]).flatten()


def _bias(contexts: Sequence[int], length: int) -> Tensor:
    """[rows, 1, length, 1, keys]: the queries are the last `length` tokens of each context."""
    context = torch.tensor(contexts)[:, None]
    query = context - length + torch.arange(length)
    hidden = torch.arange(num_tiles(max(contexts)) * KEY_TILE) > query[:, :, None]
    bias = torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
    return bias[:, None, :, None]
