"""Mutants of the native routes, of all servers."""

from __future__ import annotations

from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.native import lmstudio_mutants, ollama_mutants, tgi_mutants

NATIVE_MUTANTS: tuple[HttpMutant, ...] = (
    *ollama_mutants.MUTANTS,
    *tgi_mutants.MUTANTS,
    *lmstudio_mutants.MUTANTS,
)
