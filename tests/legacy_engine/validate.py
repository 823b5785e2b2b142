"""What the toy engine refuses before it takes a request, and how its deviations change that."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import grpc

from oe_wire import v1
from tests.legacy_engine.behaviour import INVALID, UNIMPLEMENTED, Behaviour, Key
from tests.legacy_engine.script import VOCABULARY, encode

MODEL = "toy"
WINDOW = 8192
SIZE = 1  # data-parallel ranks
MOST_STOPS = 64
_MODES = {
    "top_n": v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N,
    "token_ids": v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS,
    "all": v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL,
}
_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_DECIMAL = re.compile(r"-?[0-9]+")
PREFIX = "openengine-"
Metadata = Sequence[tuple[str, str | bytes]]


class Refusal(Exception):
    """The request is not taken, with this status."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class MalformedGuide(Exception):
    """A guide that does not compile, on an engine that finds out after it took the request."""


def prompt_of(request: v1.GenerateRequest) -> list[int]:
    """The tokens of the prompt."""
    if request.WhichOneof("input") == "prompt":
        return encode(request.prompt)
    return list(request.token_ids.ids)


def validate(request: v1.GenerateRequest, metadata: Metadata, behaviour: Behaviour) -> None:
    """Raises Refusal for a request that is not taken, MalformedGuide for a late refusal."""
    _metadata(metadata, behaviour)
    if not request.request_id and not behaviour.mints_request_id:
        raise Refusal(INVALID, "request_id is required")
    if not request.model:
        raise Refusal(INVALID, "model is required")
    if request.model != MODEL and not behaviour.serves_any_model:
        raise Refusal(grpc.StatusCode.NOT_FOUND, "unknown model")
    _input(request, behaviour)
    _sampling(request.sampling, behaviour)
    _stopping(request, behaviour)
    _response(request.response, behaviour)
    _options(request, behaviour)
    if request.HasField("guided"):
        _guided(request.guided, behaviour)


def _metadata(metadata: Metadata, behaviour: Behaviour) -> None:
    ours = [(key, str(value)) for key, value in metadata if key.startswith(PREFIX)]
    rules = {
        "openengine-priority": behaviour.priority,
        "openengine-routing-key": behaviour.routing_key,
        "openengine-target-dp-rank": behaviour.dp_rank,
    }
    for key, _ in ours:
        if rules.get(key, behaviour.unknown_key) is Key.REFUSED:
            raise Refusal(UNIMPLEMENTED, f"{key} is not supported")
    for key, value in ours:
        rule = rules.get(key, behaviour.unknown_key)
        if rule is Key.IGNORED:
            continue
        if sum(other == key for other, _ in ours) > 1:
            raise Refusal(INVALID, f"{key} is repeated")
        if key == "openengine-routing-key" and not value:
            raise Refusal(INVALID, f"{key} is empty")
        if key == "openengine-priority":
            _within(key, value, -(2**31), 2**31, rule)
        if key == "openengine-target-dp-rank":
            _within(key, value, 0, SIZE, rule)


def _within(key: str, value: str, low: int, end: int, rule: Key) -> None:
    well_formed = rule is Key.LENIENT or _DECIMAL.fullmatch(value)
    try:
        number = int(value) if well_formed else end
    except ValueError:
        number = end
    if not low <= number < end:
        raise Refusal(INVALID, f"{key} is malformed or out of range")


def _input(request: v1.GenerateRequest, behaviour: Behaviour) -> None:
    kind = request.WhichOneof("input")
    if kind is None:
        raise Refusal(INVALID, "no input")
    if kind == "prompt" and not behaviour.text_input:
        raise Refusal(behaviour.text_code, "text input is not supported")
    prompt = prompt_of(request)
    if not prompt:
        raise Refusal(INVALID, "empty input")
    if any(token >= VOCABULARY for token in prompt):
        raise Refusal(INVALID, "a token id outside the vocabulary")
    if len(prompt) >= WINDOW or len(prompt) + request.stopping.max_tokens > WINDOW:
        raise Refusal(behaviour.window_code, "the context window is too small")


def _sampling(sampling: v1.SamplingParams, behaviour: Behaviour) -> None:
    count = sampling.num_sequences
    if sampling.HasField("num_sequences") and not count and not behaviour.zero_sequences_is_one:
        raise Refusal(INVALID, "num_sequences is zero")
    if behaviour.max_num_sequences is not None and count > behaviour.max_num_sequences:
        raise Refusal(behaviour.many_sequences_code, "too many sequences")
    if count > 1 and not sampling.temperature and behaviour.greedy_several_refused:
        raise Refusal(INVALID, "greedy decoding makes one sequence")
    for name in _bad_numbers(sampling):
        if name not in behaviour.unchecked_sampling:
            raise Refusal(INVALID, f"{name} is out of range")


def _bad_numbers(sampling: v1.SamplingParams) -> Iterator[str]:
    def present(name: str) -> bool:
        return sampling.HasField(name)  # type: ignore[arg-type]

    right = {
        "temperature": math.isfinite(sampling.temperature) and sampling.temperature >= 0,
        "top_p": 0 < sampling.top_p <= 1,
        "top_k": sampling.top_k >= -1,
        "min_p": 0 <= sampling.min_p <= 1,
        "repetition_penalty": math.isfinite(sampling.repetition_penalty)
        and sampling.repetition_penalty > 0,
        "frequency_penalty": math.isfinite(sampling.frequency_penalty),
        "presence_penalty": math.isfinite(sampling.presence_penalty),
    }
    yield from (name for name, holds in right.items() if present(name) and not holds)


def _stopping(request: v1.GenerateRequest, behaviour: Behaviour) -> None:
    stopping = request.stopping
    if stopping.HasField("max_tokens"):
        if not stopping.max_tokens:
            raise Refusal(INVALID, "max_tokens is zero")
        if stopping.min_tokens > stopping.max_tokens and not behaviour.min_over_max_accepted:
            raise Refusal(INVALID, "min_tokens is above max_tokens")
    if behaviour.stops_ignored:
        return
    if len(stopping.conditions) > MOST_STOPS:
        raise Refusal(INVALID, "too many stop conditions")
    for condition in stopping.conditions:
        if not (condition.stop_text or condition.HasField("stop_token_id")):
            raise Refusal(INVALID, "an empty stop condition")


def _response(response: v1.ResponseOptions, behaviour: Behaviour) -> None:
    for asked, name in (
        (response.return_prompt_logprobs, "prompt_candidates"),
        (response.return_output_logprobs, "output_candidates"),
    ):
        if asked and response.HasField(name):  # type: ignore[arg-type]
            _candidates(getattr(response, name), behaviour)
    if response.prompt_logprob_start and behaviour.prompt_start is Key.REFUSED:
        raise Refusal(UNIMPLEMENTED, "prompt_logprob_start is not supported")


def _candidates(selection: v1.CandidateTokenSelection, behaviour: Behaviour) -> None:
    variant = selection.WhichOneof("selection")
    if variant is None or _MODES[variant] not in behaviour.candidate_modes:
        raise Refusal(INVALID, "candidate selection is not supported")
    if variant == "top_n" and selection.top_n > behaviour.top_n and not behaviour.clamps_top_n:
        raise Refusal(INVALID, "top_n is too large")
    if any(token >= VOCABULARY for token in selection.token_ids.ids):
        raise Refusal(INVALID, "a candidate outside the vocabulary")


def _options(request: v1.GenerateRequest, behaviour: Behaviour) -> None:
    if request.lora_name:
        raise Refusal(behaviour.lora_code, "adapters are not supported")
    if request.media:
        raise Refusal(behaviour.media_code, "media are not supported")
    if request.kv.bypass_prefix_cache and behaviour.bypass_code is not None:
        raise Refusal(behaviour.bypass_code, "prefix cache bypass is not supported")
    if request.kv.HasField("cache_salt") and not behaviour.cache_salt:
        raise Refusal(behaviour.salt_code, "cache salts are not supported")
    if request.kv.HasField("session") and not behaviour.session_accepted:
        raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "not a decode engine")


def _guided(guided: v1.GuidedDecoding, behaviour: Behaviour) -> None:
    guide = guided.WhichOneof("guide")
    if guide is None:
        if behaviour.empty_guide_accepted:
            return
        raise Refusal(INVALID, "no guide")
    modes = behaviour.guided_modes
    if modes is None:
        return  # accepted and ignored, by an engine that says nothing about guides
    if v1.GuidedDecodingMode.Value(f"GUIDED_DECODING_MODE_{guide.upper()}") not in modes:
        raise Refusal(behaviour.guide_code, "this kind of guide is not supported")
    if _compiles(guided):
        return
    if behaviour.malformed_guide_in_band:
        raise MalformedGuide
    raise Refusal(INVALID, "the guide does not compile")


def _compiles(guided: v1.GuidedDecoding) -> bool:
    try:
        match guided.WhichOneof("guide"):
            case "json_schema":
                return _schema(json.loads(guided.json_schema))
            case "regex":
                re.compile(guided.regex)
            case "ebnf_grammar":
                return _grammar(guided.ebnf_grammar)
            case _:
                pass
    except (ValueError, re.error):
        return False
    return True


def _grammar(text: str) -> bool:
    """Rules with whole literals and groups, which is as far as this engine looks."""
    rules = re.fullmatch(r"(\s*\w+\s*::=[^\n=]+)+", text)
    bare = "".join(text.split('"')[::2])
    return bool(rules) and text.count('"') % 2 == 0 and bare.count("(") == bare.count(")")


def _schema(schema: object) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", "object")
    named: Iterable[object] = kind if isinstance(kind, list) else [kind]
    inner = schema.get("properties", {})
    return set(named) <= _TYPES and isinstance(inner, dict) and all(map(_schema, inner.values()))
