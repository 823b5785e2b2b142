"""Requests that use given features: one of them, or all of a combination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.model.case import Case
from conformance.oracle.metadata import PRIORITY, TARGET_RANK
from conformance.strategies.simple import simple_request, token_ids
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from oe_wire import v1

Use = Callable[[v1.GenerateRequest, Declared], None]
# A guide of each mode, valid in every backend's dialect of it.
GUIDES: Mapping[str, Callable[[v1.GuidedDecoding], None]] = {
    "json_schema": lambda guide: setattr(guide, "json_schema", '{"type": "object"}'),
    "regex": lambda guide: setattr(guide, "regex", "[a-z]{1,4}"),
    "ebnf_grammar": lambda guide: setattr(guide, "ebnf_grammar", 'root ::= "yes" | "no"'),
    "choice": lambda guide: guide.choice.choices.extend(["yes", "no"]),
    "json_object": lambda guide: guide.json_object.SetInParent(),
}


def _text(request: v1.GenerateRequest, _: Declared) -> None:
    request.prompt = "a"


def _tokens(request: v1.GenerateRequest, declared: Declared) -> None:
    request.token_ids.ids[:] = token_ids(declared, 2)


def _prompt_logprobs(request: v1.GenerateRequest, _: Declared) -> None:
    request.response.return_prompt_logprobs = True


def _output_logprobs(request: v1.GenerateRequest, _: Declared) -> None:
    request.response.return_output_logprobs = True


def _sequences(request: v1.GenerateRequest, _: Declared) -> None:
    # Sampled, since engines may refuse to make several greedy outputs.
    request.sampling.num_sequences = 2
    request.sampling.temperature = 1.0


def _stop_in_output(request: v1.GenerateRequest, _: Declared) -> None:
    request.stopping.include_stop_in_output = True


def _salt(request: v1.GenerateRequest, _: Declared) -> None:
    request.kv.cache_salt = "salt"


def _bypass(request: v1.GenerateRequest, _: Declared) -> None:
    request.kv.bypass_prefix_cache = True


def _guided(request: v1.GenerateRequest, declared: Declared) -> None:
    scope = declared.capabilities
    listed = () if scope is None else scope.generation.guided_decoding.modes
    names = [v1.GuidedDecodingMode.Name(mode).lower() for mode in listed]
    modes = [name.removeprefix("guided_decoding_mode_") for name in names]
    chosen = next((mode for mode in modes if mode in GUIDES), "regex")
    GUIDES[chosen](request.guided)


# How a Generate request uses a feature. Adapters, media and KV sessions are missing: only an
# engine with one of them loaded can say that it is the combination which it refuses.
USES: Mapping[str, Use] = {
    "input.text": _text,
    "input.token_ids": _tokens,
    "request.prompt_logprobs": _prompt_logprobs,
    "request.output_logprobs": _output_logprobs,
    "request.num_sequences": _sequences,
    "request.stop_in_output": _stop_in_output,
    "request.cache_salt": _salt,
    "request.prefix_cache_bypass": _bypass,
    "request.guided": _guided,
}
KEYS: Mapping[str, Metadata] = {
    "metadata.priority": ((PRIORITY, "1"),),
    "metadata.target_dp_rank": ((TARGET_RANK, "0"),),
}


def using(declared: Declared, features: Iterable[str]) -> Case | None:
    """The simplest Generate call that uses all `features`; None where one of them is not to be
    had by a Generate request alone.
    """
    request = simple_request(declared)
    metadata: Metadata = ()
    for feature in features:
        if feature in USES:
            USES[feature](request, declared)
        elif feature in KEYS:
            metadata += KEYS[feature]
        else:
            return None
    return Case(request, metadata)
