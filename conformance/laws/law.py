"""A law: a pure rule about one finished call, run on every transcript that any check produces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript

GENERATE = "openengine.v1.Inference/Generate"


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a law: what the requirement demands, what was seen, at which event (0-based).

    `actual` never holds prompt or output text: it goes into reports as it is.
    """

    expected: str
    actual: str
    event: int | None = None


# True: kept. A Finding: broken. None: the precondition did not hold, so nothing was judged.
Ruling = Finding | Literal[True] | None
Judge = Callable[[Transcript, Declared], Ruling]


@dataclass(frozen=True, slots=True)
class Law:
    """A rule for one requirement over calls of `methods` (empty = every RPC).

    judge returns True when the rule is kept, a Finding when it is broken, None when the
    precondition did not hold. reads_content: whether it compares texts or token ids, so that it
    cannot judge a redacted call.
    """

    requirement: str
    judge: Judge
    methods: frozenset[str]
    reads_content: bool = False

    def applies_to(self, transcript: Transcript) -> bool:
        """Whether this law can judge the call."""
        if self.reads_content and transcript.redacted:
            return False
        return not self.methods or transcript.method in self.methods


def law(
    requirement: str,
    *,
    methods: frozenset[str] = frozenset({GENERATE}),
    reads_content: bool = False,
) -> Callable[[Judge], Law]:
    """Make a Law of a function `(transcript, declared) -> True | Finding | None`."""

    def make(judge: Judge) -> Law:
        return Law(requirement, judge, methods, reads_content)

    return make


def table(*laws: Law) -> Mapping[str, Law]:
    """Laws by requirement id; two laws for one requirement are an import error."""
    by_id: dict[str, Law] = {}
    for item in laws:
        if item.requirement in by_id:
            raise ImportError(f"two laws for {item.requirement}; a requirement has one")
        by_id[item.requirement] = item
    return by_id
