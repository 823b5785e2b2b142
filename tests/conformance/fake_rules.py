"""What the fake engine declares, and the requests that it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from oe_wire import v1

MODEL = "fake-model"
ALIAS = "fake"
# Long enough for the ids of checks, short enough to try the limit cheaply.
ID_BYTES = 64
WINDOW = 256
OUTPUT = 200
SEQUENCES = 4
STOPS = 8
TOP_N = 5
VOCABULARY = 32

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def capabilities() -> v1.Capabilities:
    """Core 1.0 with the limits above."""
    core = v1.CoreCapabilities(
        max_request_id_bytes=ID_BYTES,
        max_stop_conditions=STOPS,
        abort_targets=[v1.ABORT_TARGET_KIND_REQUEST_ID, v1.ABORT_TARGET_KIND_ALL_REQUESTS],
        finished_request_retention_ms=1000,
        accepts_zero_max_tokens=False,
        deterministic_seed=True,
        health_probes=[v1.HEALTH_PROBE_KIND_PASSIVE],
    )
    profile = v1.ServiceProfile(
        name="core",
        major=1,
        models=[MODEL],
        services=[f"openengine.v1.{name}" for name in ("Inference", "Control")]
        + ["openengine.v1.OpenEngineDiscovery"],
    )
    return v1.Capabilities(
        profiles=[profile],
        instance_id="fake-1",
        configuration_epoch=1,
        capability_revision=1,
        change_notices=[v1.CAPABILITY_CHANGE_NOTICE_RECONNECT],
        core=core,
        generation=model_info().generation,
    )


def model_info() -> v1.ModelInfo:
    """A model that takes text and token ids and reports all log probabilities."""
    modes = [
        v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N,
        v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS,
        v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL,
    ]
    logprobs = v1.LogprobCapabilities(
        supported=True, candidate_selection_modes=modes, max_top_n=TOP_N
    )
    return v1.ModelInfo(
        model_id=MODEL,
        served_model_name=MODEL,
        served_model_aliases=[ALIAS],
        max_context_length=WINDOW,
        max_output_tokens=OUTPUT,
        supports_text_input=True,
        supports_token_ids_input=True,
        supports_lora=False,
        supports_multimodal=False,
        generation=v1.GenerationCapabilities(
            prompt_logprobs=logprobs,
            output_logprobs=logprobs,
            guided_decoding=v1.GuidedDecodingCapabilities(supported=False),
            max_num_sequences=SEQUENCES,
            supports_priority=False,
            supports_stop_in_output=True,
            supports_cache_salt=False,
            supports_prefix_cache_bypass=False,
        ),
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """Requests that meet `breaks` are refused with `code`; `row` is the requirement's short id."""

    row: str
    breaks: Callable[[v1.GenerateRequest, v1.ModelInfo], bool]
    code: grpc.StatusCode = INVALID


def prompt_length(request: v1.GenerateRequest) -> int:
    """Prompt tokens: ids, or one per character of a text."""
    return len(request.token_ids.ids) or len(request.prompt)


def _unit(value: float, *, zero: bool) -> bool:
    return math.isfinite(value) and value <= 1 and (value > 0 or (zero and value == 0))


def _sampling(name: str, legal: Callable[[float], bool]) -> Callable[..., bool]:
    def breaks(request: v1.GenerateRequest, _: v1.ModelInfo) -> bool:
        sampling = request.sampling
        return sampling.HasField(name) and not legal(getattr(sampling, name))  # type: ignore[arg-type]

    return breaks


def _void(condition: v1.StopCondition) -> bool:
    return not condition.stop_text and not condition.HasField("stop_token_id")


RULES: tuple[Rule, ...] = (
    Rule("GEN-001", lambda r, m: not r.request_id),
    Rule("GEN-002", lambda r, m: len(r.request_id.encode()) > ID_BYTES),
    Rule("GEN-005", lambda r, m: not r.model),
    Rule(
        "GEN-005",
        lambda r, m: bool(r.model) and r.model not in {MODEL, ALIAS},
        grpc.StatusCode.NOT_FOUND,
    ),
    Rule("GEN-006", lambda r, m: r.WhichOneof("input") is None),
    Rule("GEN-007", lambda r, m: r.HasField("token_ids") and not r.token_ids.ids),
    Rule(
        "GEN-008",
        lambda r, m: (
            (r.HasField("prompt") and not m.supports_text_input)
            or (r.HasField("token_ids") and not m.supports_token_ids_input)
        ),
    ),
    Rule("GEN-010", lambda r, m: prompt_length(r) > WINDOW),
    Rule("GEN-012", _sampling("num_sequences", lambda n: 1 <= n <= SEQUENCES)),
    Rule("GEN-013", lambda r, m: r.stopping.HasField("max_tokens") and not r.stopping.max_tokens),
    Rule(
        "GEN-014",
        lambda r, m: (
            r.stopping.HasField("max_tokens") and r.stopping.min_tokens > r.stopping.max_tokens
        ),
    ),
    Rule("GEN-015", lambda r, m: r.stopping.max_tokens > OUTPUT),
    Rule("GEN-016", _sampling("temperature", lambda t: math.isfinite(t) and t >= 0)),
    Rule("GEN-017", _sampling("top_p", lambda p: _unit(p, zero=False))),
    Rule("GEN-018", _sampling("top_k", lambda k: k >= -1)),
    Rule("GEN-019", _sampling("min_p", lambda p: _unit(p, zero=True))),
    Rule("GEN-020", _sampling("repetition_penalty", lambda p: math.isfinite(p) and p > 0)),
    Rule("GEN-020", _sampling("frequency_penalty", math.isfinite)),
    Rule("GEN-020", _sampling("presence_penalty", math.isfinite)),
    Rule("GEN-021", lambda r, m: any(_void(c) for c in r.stopping.conditions)),
    Rule("GEN-022", lambda r, m: len(r.stopping.conditions) > STOPS),
    Rule("GEN-023", lambda r, m: r.HasField("guided")),
    Rule("GEN-025", lambda r, m: any(map(_impossible, _selections(r.response)))),
    Rule("GEN-026", lambda r, m: _without_flag(r.response)),
    Rule("GEN-027", lambda r, m: bool(r.media)),
    Rule("GEN-028", lambda r, m: bool(r.lora_name)),
    Rule("GEN-030", lambda r, m: r.kv.bypass_prefix_cache or r.kv.HasField("cache_salt")),
    Rule("GEN-032", lambda r, m: r.kv.HasField("session"), grpc.StatusCode.FAILED_PRECONDITION),
)


def _selections(response: v1.ResponseOptions) -> list[v1.CandidateTokenSelection]:
    names = ("prompt_candidates", "output_candidates")
    return [getattr(response, name) for name in names if response.HasField(name)]  # type: ignore[arg-type]


def _impossible(selection: v1.CandidateTokenSelection) -> bool:
    ids = selection.token_ids.ids
    nothing = selection.WhichOneof("selection") is None
    return nothing or selection.top_n > TOP_N or any(token >= VOCABULARY for token in ids)


def _without_flag(response: v1.ResponseOptions) -> bool:
    return any(
        response.HasField(f"{which}_candidates")  # type: ignore[arg-type]
        and not getattr(response, f"return_{which}_logprobs")
        for which in ("prompt", "output")
    )
