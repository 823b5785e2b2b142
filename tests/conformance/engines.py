"""Declarations of different engines, for tests that need no server."""

from __future__ import annotations

from conformance.wire.declared import Declared, TargetClass
from oe_wire import v1
from tests.conformance.fake_engine import FakeEngine
from tests.conformance.fake_rules import MODEL


def full() -> Declared:
    """A profile-aware engine that reports every limit."""
    return FakeEngine().declared


def tokens_only() -> Declared:
    """One that takes token ids and no text, and reports no limit of the window."""
    declared = full()
    model = declared.model or v1.ModelInfo()
    model.supports_text_input = False
    model.ClearField("max_context_length")
    return declared


def text_only() -> Declared:
    """One that takes text only, one sequence at a time, without log probabilities."""
    declared = full()
    model = declared.model or v1.ModelInfo()
    model.supports_token_ids_input = False
    model.generation.ClearField("max_num_sequences")
    model.generation.ClearField("output_logprobs")
    model.generation.ClearField("prompt_logprobs")
    model.generation.supports_stop_in_output = False
    return declared


def small() -> Declared:
    """One with limits near the smallest that make sense."""
    declared = full()
    model = declared.model or v1.ModelInfo()
    model.max_context_length = 48
    model.max_output_tokens = 2
    if declared.capabilities is not None:
        declared.capabilities.core.max_stop_conditions = 1
    return declared


def excluding() -> Declared:
    """One on which text input and log probabilities exclude each other."""
    declared = full()
    if declared.capabilities is not None:
        declared.capabilities.incompatible.append(
            v1.FeatureCombination(features=["input.text", "request.prompt_logprobs"])
        )
    return declared


def legacy() -> Declared:
    """A v0.1.0 engine that reports next to nothing."""
    return Declared(
        TargetClass.LEGACY,
        "v0.1.0",
        server_info=v1.ServerInfo(engine_name="old", engine_role=v1.ENGINE_ROLE_AGGREGATED),
        model=v1.ModelInfo(served_model_name=MODEL),
        model_name=MODEL,
    )


ENGINES = {
    engine.__name__: engine() for engine in (full, tokens_only, text_only, small, excluding, legacy)
}
