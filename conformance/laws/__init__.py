"""The laws by requirement, and the judgement of one call by all that apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from conformance.laws import (
    deltas,
    enums,
    envelope,
    errors,
    guided,
    health,
    load_info,
    logprobs,
    prompt,
    stopping,
    usage,
    watch_load,
    watch_load_pace,
    watch_load_settings,
)
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
    *enums.LAWS,
    *health.LAWS,
    *load_info.LAWS,
    *watch_load.LAWS,
    *watch_load_settings.LAWS,
    *watch_load_pace.LAWS,
)


def laws_of(method: str) -> frozenset[str]:
    """Requirements whose laws judge calls of the RPC `package.Service/Rpc`."""
    return frozenset(
        requirement for requirement, law in LAWS.items() if not law.methods or method in law.methods
    )


def judge(transcript: Transcript, declared: Declared) -> dict[str, Ruling]:
    """The ruling of each law that applies to the RPC, by requirement id, ids in order."""
    return {
        law.requirement: law.judge(transcript, declared)
        for law in _laws_about(transcript.method)
        if law.applies_to(transcript)
    }


@cache
def _laws_about(method: str) -> tuple[Law, ...]:
    return tuple(LAWS[requirement] for requirement in sorted(laws_of(method)))


__all__ = ["LAWS", "Finding", "Law", "Ruling", "judge", "laws_of"]
