"""Takes prompts and outputs out of HTTP bodies before they go into a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Values that hold, or may quote, what was asked or answered. `message` is an object in a choice,
# which is looked into, and a text that may echo the request in an error.
PAYLOADS = frozenset(
    {
        *(
            "content",
            "text",
            "prompt",
            "input",
            "output_text",
            "generated_text",
            "delta",
            "message",
        ),
        *("response", "refusal", "reasoning_content", "arguments", "thinking", "suffix", "stop"),
        *("token", "tokens", "bytes", "token_ids", "prompt_token_ids", "top_logprobs", "error"),
        *("detail", "instructions", "system", "system_prompt", "context", "inputs", "part"),
    }
)


def redacted(value: Any, name: str = "") -> Any:
    """A copy of a JSON value with every payload replaced by its size; structure stays."""
    if isinstance(value, Mapping):
        return {key: redacted(item, key) for key, item in value.items()}
    if isinstance(value, list):
        if name in PAYLOADS and not any(isinstance(item, Mapping) for item in value):
            return f"<{len(value)} items>"
        return [redacted(item, name) for item in value]
    if name in PAYLOADS and isinstance(value, str):
        return f"<{len(value)} characters>"
    if name in PAYLOADS and isinstance(value, int | float) and not isinstance(value, bool):
        return "<number>"
    return value
