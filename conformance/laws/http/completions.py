"""The laws of Completions: those that it shares with Chat Completions."""

from __future__ import annotations

from conformance.laws.http import openai
from conformance.laws.http.shared import law_of
from conformance.laws.http.view import COMPLETIONS

LAWS = tuple(
    law_of(requirement, rule, COMPLETIONS)
    for requirement, rule in (
        ("OE-HTTP-COMP-001", openai.unary_shape),
        ("OE-HTTP-COMP-002", openai.chunk_shape),
        ("OE-HTTP-COMP-003", openai.finish_key),
        ("OE-HTTP-COMP-004", openai.finish_value),
        ("OE-HTTP-COMP-005", openai.after_finish),
        ("OE-HTTP-COMP-006", openai.terminated),
        ("OE-HTTP-COMP-007", openai.usage_asked),
        ("OE-HTTP-COMP-008", openai.usage_unasked),
        ("OE-HTTP-COMP-009", openai.unary_usage),
        ("OE-HTTP-COMP-023", openai.logprobs_unasked),
        ("OE-HTTP-COMP-030", openai.announced),
    )
)
