"""One output in the making: its tokens, its blocks, and how far the cache has got."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reference_engine.engine.history import TokenHistory
from reference_engine.engine.output import Token
from reference_engine.engine.output_text import OutputText
from reference_engine.engine.prefix_cache import Prefix
from reference_engine.engine.request import Request
from reference_engine.guided.matcher import Matcher


@dataclass(slots=True, eq=False)
class Sequence:
    """Prompt and output tokens of one output index.

    num_computed counts tokens whose keys and values are in `blocks`; preemption sets it to 0
    and the tokens are computed again. `order` is the admission order, the lowest is the oldest.
    `prefixes` are the cached contents of its first blocks, `digests` the hash chain over its
    tokens as far as it was needed, `running` whether the scheduler lets it take part in steps.
    """

    request: Request
    output_index: int
    order: int
    text: OutputText
    max_new: int
    token_ids: list[int]
    blocks: list[int] = field(default_factory=list)
    num_computed: int = 0
    prompt_scores: list[Token] | None = None
    finished: bool = False
    running: bool = False
    prefixes: list[Prefix] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    cached_prompt_tokens: int | None = None
    history: TokenHistory | None = None
    matcher: Matcher | None = None
    num_prompt: int = field(init=False)
    rank: tuple[int, int] = field(init=False)
    _table: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.num_prompt = len(self.request.prompt)
        # Sorts by priority first, then by age.
        self.rank = (-self.request.priority, self.order)
        self._table = np.zeros(8, dtype=np.int64)
        self.set_blocks(self.blocks)

    @property
    def num_output(self) -> int:
        """Tokens drawn so far, stop tokens included."""
        return len(self.token_ids) - self.num_prompt

    @property
    def num_pending(self) -> int:
        """Known tokens that the cache lacks; 1 while decoding."""
        return len(self.token_ids) - self.num_computed

    @property
    def scores_prompt(self) -> bool:
        """Whether this sequence still gathers the scores of the prompt."""
        return self.prompt_scores is not None

    @property
    def most_cached(self) -> int:
        """Leading tokens that may come from the cache: not those whose logits are wanted."""
        if self.scores_prompt:
            return min(self.num_prompt - 1, max(0, self.next_prompt_score() - 1))
        return len(self.token_ids) - 1

    @property
    def block_table(self) -> NDArray[np.int64]:
        """The blocks as int64 [len(blocks)], a view."""
        return self._table[: len(self.blocks)]

    def next_prompt_score(self) -> int:
        """Position of the next prompt token to be scored."""
        start = self.request.scoring.prompt_start or 0
        return start + len(self.prompt_scores or ())

    def set_blocks(self, blocks: SequenceOf[int]) -> None:
        """Replace all blocks."""
        self.blocks = []
        self.add_blocks(blocks)

    def add_blocks(self, blocks: SequenceOf[int]) -> None:
        """Append blocks behind those it has."""
        if not blocks:
            return
        start = len(self.blocks)
        self.blocks += blocks
        if len(self.blocks) > len(self._table):
            self._table = np.resize(self._table, 2 * len(self.blocks))
        self._table[start : len(self.blocks)] = blocks

    def replace_block(self, index: int, block: int) -> None:
        """Put another block in a place."""
        self.blocks[index] = block
        self._table[index] = block
