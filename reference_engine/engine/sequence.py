"""One output in the making: its tokens, its blocks, and how far the cache has got."""

from dataclasses import dataclass, field

from reference_engine.engine.output import Token
from reference_engine.engine.output_text import OutputText
from reference_engine.engine.request import Request


@dataclass(slots=True, eq=False)
class Sequence:
    """Prompt and output tokens of one output index.

    num_computed counts tokens whose keys and values are in `blocks`; preemption sets it to 0
    and the tokens are computed again. `order` is the admission order, the lowest is the oldest.
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

    @property
    def num_prompt(self) -> int:
        """Prompt tokens."""
        return len(self.request.prompt)

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

    def next_prompt_score(self) -> int:
        """Position of the next prompt token to be scored."""
        start = self.request.scoring.prompt_start or 0
        return start + len(self.prompt_scores or ())
