"""Feature tokens that a request uses, for the combinations that an engine excludes."""

from __future__ import annotations

from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from oe_wire import v1


def used(request: v1.GenerateRequest, metadata: Metadata = ()) -> frozenset[str]:
    """Tokens of the feature registry that the call makes use of."""
    response, kv = request.response, request.kv
    keys = {key for key, _ in metadata}
    table = {
        "input.text": request.WhichOneof("input") == "prompt",
        "input.token_ids": request.WhichOneof("input") == "token_ids",
        "request.media": bool(request.media),
        "request.lora": bool(request.lora_name),
        "request.guided": request.HasField("guided"),
        "request.prompt_logprobs": response.return_prompt_logprobs,
        "request.output_logprobs": response.return_output_logprobs,
        "request.num_sequences": request.sampling.num_sequences > 1,
        "request.stop_in_output": request.stopping.include_stop_in_output,
        "request.cache_salt": kv.HasField("cache_salt"),
        "request.prefix_cache_bypass": kv.bypass_prefix_cache,
        "request.kv_session": kv.HasField("session"),
        "metadata.priority": "openengine-priority" in keys,
        "metadata.target_dp_rank": "openengine-target-dp-rank" in keys,
    }
    return frozenset(token for token, holds in table.items() if holds)


def incompatible(request: v1.GenerateRequest, declared: Declared, metadata: Metadata = ()) -> bool:
    """Whether the call uses every feature of a combination that the engine excludes."""
    if declared.capabilities is None:
        return False
    tokens = used(request, metadata)
    return any(
        combination.features and set(combination.features) <= tokens
        for combination in declared.capabilities.incompatible
    )
