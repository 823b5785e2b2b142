"""Checks of Chat Completions: what its laws and the bodies shared with Completions find."""

from __future__ import annotations

from conformance.checks.http import shared
from conformance.checks.http.check import params
from conformance.checks.http.text_api import CHAT_API
from conformance.checks.http.text_checks import (
    BOTH,
    CUT_CASES,
    CUT_CHARACTERS,
    EMPTY_TOO,
    PREFIXES,
    RELEASED,
    SAMPLED,
    SCRIPTS,
    SEEDS,
    STOP_CASES,
    STREAM,
    STREAM_AND_UNARY,
    TWO,
    TWO_STREAMED,
    UNARY,
    WITH_USAGE,
    for_api,
    seen_law,
    stopped_stream,
    stopped_whole,
    without_usage,
)

BAD_SCHEMAS = params({"schema": {"type": "nonsense"}}, {"schema": 5})

LAW_CHECKS = tuple(
    seen_law(requirement, CHAT_API, advice, table)
    for requirement, advice, table in (
        ("OE-HTTP-CHAT-001", "Send object, id, created, model and numbered choices.", UNARY),
        ("OE-HTTP-CHAT-002", "Give all chunks of a stream one id and one model.", STREAM),
        ("OE-HTTP-CHAT-003", "Begin each choice with the role assistant.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-004", "Send finish_reason null until the last chunk of a choice.", STREAM),
        ("OE-HTTP-CHAT-005", "Use the reasons that the API defines.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-006", "Send finish_reason after all content.", STREAM),
        ("OE-HTTP-CHAT-007", "End each stream with the event [DONE].", STREAM),
        ("OE-HTTP-CHAT-008", "Send usage in a last chunk of its own, with choices [].", WITH_USAGE),
        ("OE-HTTP-CHAT-009", "Send usage only where include_usage is true.", without_usage),
        ("OE-HTTP-CHAT-010", "Report counts whose total is their sum.", UNARY),
        ("OE-HTTP-CHAT-025", "Send logprobs only where they are asked for.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-032", "Number choices below n; end a stream after an error.", STREAM),
        ("OE-HTTP-CHAT-033", "Send content, be it null, in each message.", EMPTY_TOO),
    )
)

BODY_CHECKS = tuple(
    for_api(requirement, CHAT_API, body, advice, table)
    for requirement, body, advice, table in (
        ("OE-HTTP-CHAT-011", shared.own_end, "Report the end token as stop.", BOTH),
        ("OE-HTTP-CHAT-012", shared.cut, "Count tokens, and report length.", CUT_CASES),
        ("OE-HTTP-CHAT-013", stopped_whole, "Match stop strings in the text.", STOP_CASES),
        ("OE-HTTP-CHAT-014", stopped_stream, "Hold back what may be a stop string.", STOP_CASES),
        ("OE-HTTP-CHAT-015", shared.released, "Send what is held back at the end.", RELEASED),
        ("OE-HTTP-CHAT-016", shared.whole_characters, "Hold back incomplete UTF-8.", UNARY),
        ("OE-HTTP-CHAT-017", shared.cut_character, "Treat half a character alike.", CUT_CHARACTERS),
        ("OE-HTTP-CHAT-018", shared.stream_equals_unary, "Make both of one generation.", SCRIPTS),
        ("OE-HTTP-CHAT-019", shared.same_usage, "Count once for both forms.", SCRIPTS),
        ("OE-HTTP-CHAT-020", shared.several, "Generate n choices.", TWO),
        ("OE-HTTP-CHAT-021", shared.several, "Generate n choices.", TWO_STREAMED),
        ("OE-HTTP-CHAT-026", shared.seeded, "Seed the sampler of each request.", SEEDS),
        ("OE-HTTP-CHAT-027", shared.sampled, "Sample at a temperature above 0.", SAMPLED),
        ("OE-HTTP-CHAT-028", shared.constrained, "Constrain sampling by the schema.", BOTH),
        ("OE-HTTP-CHAT-029", shared.bad_schema, "Refuse what is no JSON Schema.", BAD_SCHEMAS),
        ("OE-HTTP-CHAT-030", shared.prefix, "Let max_tokens only end the answer.", PREFIXES),
        ("OE-HTTP-CHAT-031", shared.nothing, "Refuse max_tokens 0.", BOTH),
        ("OE-HTTP-CHAT-034", shared.ordinary, "Serve plain requests.", BOTH),
    )
)
