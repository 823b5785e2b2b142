"""Mutants of Responses: one for each of its rules, some with two."""

from __future__ import annotations

from conformance.mutants.http.responses_api import events, objects, stream_errors, texts

MUTANTS = (*objects.MUTANTS, *events.MUTANTS, *texts.MUTANTS, *stream_errors.MUTANTS)
