"""Where one output stands in its language."""

import time

from llguidance import LLMatcher

# Masks take 0.1 ms, at worst a few; one that takes longer than this holds up every other output.
MAX_MASK_SECONDS = 0.5


class Matcher:
    """One per output. It survives preemption, because recomputed tokens are not drawn again."""

    def __init__(self, matcher: LLMatcher, eos_token_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._eos_token_ids = eos_token_ids
        self._slow = False

    @property
    def failed(self) -> bool:
        """Whether a limit was hit, or a token came that the language does not have."""
        return self._slow or self._matcher.is_error()

    @property
    def complete(self) -> bool:
        """Whether what came so far belongs to the language."""
        return not self.failed and self._matcher.is_accepting()

    def fill(self, pointer: int, num_bytes: int) -> None:
        """Write one bit per token id into memory; afterwards look at `failed`."""
        start = time.thread_time()
        self._matcher.unsafe_compute_mask_ptr(pointer, num_bytes)
        self._slow = time.thread_time() - start > MAX_MASK_SECONDS

    def advance(self, token_id: int) -> bool:
        """Take the token that was drawn; False when the language ends here without a match.

        EOS is not consumed: where min_tokens wants more tokens it comes again and again.
        """
        if token_id in self._eos_token_ids:
            return self.complete
        return self._matcher.consume_token(token_id) and not self.failed
