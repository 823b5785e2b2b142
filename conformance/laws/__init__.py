"""The laws by requirement, and the judgement of one call by all that apply to it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.laws import deltas, envelope, errors, guided, logprobs, prompt, stopping, usage
from conformance.laws.law import Finding, Law, Ruling, table
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript

LAWS: Mapping[str, Law] = table(
    *envelope.LAWS,
    *deltas.LAWS,
    *prompt.LAWS,
    *stopping.LAWS,
    *logprobs.LAWS,
    *usage.LAWS,
    *guided.LAWS,
    *errors.LAWS,
)


def judge(transcript: Transcript, declared: Declared) -> dict[str, Ruling]:
    """The ruling of each law that applies to the RPC, by requirement id, ids in order."""
    return {
        requirement: LAWS[requirement].judge(transcript, declared)
        for requirement in sorted(LAWS)
        if LAWS[requirement].applies_to(transcript)
    }


__all__ = ["LAWS", "Finding", "Law", "Ruling", "judge"]
