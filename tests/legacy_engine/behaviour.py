"""How a v0.1.0 engine departs from a right one: a fact for each cell of a table of real servers.

Every default is the right behaviour, so that each field alone can be switched on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

import grpc

from oe_wire import v1

INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
TOP_N = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N
TOKEN_IDS = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS
ALL = v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL
JSON_SCHEMA = v1.GUIDED_DECODING_MODE_JSON_SCHEMA
REGEX = v1.GUIDED_DECODING_MODE_REGEX
GRAMMAR = v1.GUIDED_DECODING_MODE_EBNF_GRAMMAR


class Key(StrEnum):
    """What is done with a metadata key."""

    CHECKED = "checked"  # read, and refused when malformed or repeated
    REFUSED = "refused"  # UNIMPLEMENTED whatever its value
    IGNORED = "ignored"
    LENIENT = "lenient"  # read as Python's int() does


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One v0.1.0 engine.

    The first group is what it says about itself, the second how Generate departs from the rules,
    the third how Control does. `..._code`: the status of a refusal. Token counts and limits are
    in tokens; None = no limit, or not reported.
    """

    # What it declares
    role: int = v1.ENGINE_ROLE_AGGREGATED
    schema_release: str = "5f3c9d1a7b20486e8c11d2f0a94b7e63c5d8f012"
    text_input: bool = True
    max_num_sequences: int | None = 4
    max_output_tokens: int | None = 4096
    top_n: int = 5
    candidate_modes: tuple[int, ...] = (TOP_N, TOKEN_IDS, ALL)
    guided_modes: tuple[int, ...] | None = (JSON_SCHEMA, REGEX, GRAMMAR)
    cache_salt: bool = True
    draft: bool = False  # the numbering of the draft
    single_service: bool = False  # the one service of the first drafts

    # Generate
    mints_request_id: bool = False
    serves_any_model: bool = False
    text_code: grpc.StatusCode = INVALID
    zero_sequences_is_one: bool = False
    many_sequences_code: grpc.StatusCode = INVALID
    greedy_several_refused: bool = False
    min_over_max_accepted: bool = False
    default_max_tokens: int | None = None
    unchecked_sampling: frozenset[str] = frozenset()
    guide_code: grpc.StatusCode = INVALID
    empty_guide_accepted: bool = False
    malformed_guide_in_band: bool = False
    lora_code: grpc.StatusCode = INVALID
    media_code: grpc.StatusCode = INVALID
    bypass_code: grpc.StatusCode | None = None
    salt_code: grpc.StatusCode = INVALID
    window_code: grpc.StatusCode = INVALID
    priority: Key = Key.CHECKED
    routing_key: Key = Key.CHECKED
    dp_rank: Key = Key.CHECKED
    unknown_key: Key = Key.IGNORED
    session_accepted: bool = False
    clamps_top_n: bool = False
    all_is_twenty: bool = False
    prompt_start: Key = Key.CHECKED
    first_prompt_logprob: bool = False
    eos_unnamed: bool = False
    stops_ignored: bool = False
    text_ahead: bool = False
    prefill_token: bool = False
    prefill_usage: bool = True
    max_running: int | None = 64

    # Control
    knows_any_model: bool = False
    empty_model_known: bool = False
    probe_code: grpc.StatusCode | None = None
    probe_any_model: bool = False
    forgets_unknown_aborts: bool = False
    session_abort_code: grpc.StatusCode | None = UNIMPLEMENTED
    lora_rpc_code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION
    kv_sources: Key = Key.CHECKED
    per_rank_load: bool = True
    ready: bool = True


CLEAN = Behaviour()

# The adapter that TensorRT-LLM ships.
TRTLLM = Behaviour(
    role=v1.ENGINE_ROLE_UNSPECIFIED,
    schema_release="0f9a61c24e7d4b0f8a35c6de12b47790",
    max_num_sequences=None,
    max_output_tokens=None,
    serves_any_model=True,
    greedy_several_refused=True,
    min_over_max_accepted=True,
    unchecked_sampling=frozenset({"temperature", "top_p", "top_k"}),
    guide_code=UNIMPLEMENTED,
    empty_guide_accepted=True,
    malformed_guide_in_band=True,
    lora_code=UNIMPLEMENTED,
    media_code=UNIMPLEMENTED,
    bypass_code=UNIMPLEMENTED,
    window_code=grpc.StatusCode.INTERNAL,
    priority=Key.REFUSED,
    routing_key=Key.REFUSED,
    dp_rank=Key.LENIENT,
    unknown_key=Key.REFUSED,
    session_accepted=True,
    prompt_start=Key.REFUSED,
    eos_unnamed=True,
    text_ahead=True,
    prefill_token=True,
    max_running=None,
    knows_any_model=True,
    empty_model_known=True,
    probe_any_model=True,
    forgets_unknown_aborts=True,
    lora_rpc_code=UNIMPLEMENTED,
    kv_sources=Key.IGNORED,
    per_rank_load=False,
)

# The mocker that Dynamo tests its routers with.
MOCKER = Behaviour(
    schema_release="",
    text_input=False,
    max_num_sequences=1,
    max_output_tokens=None,
    top_n=20,
    guided_modes=None,
    cache_salt=False,
    mints_request_id=True,
    text_code=UNIMPLEMENTED,
    zero_sequences_is_one=True,
    many_sequences_code=UNIMPLEMENTED,
    default_max_tokens=20,
    unchecked_sampling=frozenset({"temperature", "top_p", "top_k"}),
    empty_guide_accepted=True,
    lora_code=UNIMPLEMENTED,
    media_code=UNIMPLEMENTED,
    bypass_code=UNIMPLEMENTED,
    salt_code=UNIMPLEMENTED,
    priority=Key.IGNORED,
    routing_key=Key.IGNORED,
    dp_rank=Key.IGNORED,
    clamps_top_n=True,
    all_is_twenty=True,
    prompt_start=Key.IGNORED,
    first_prompt_logprob=True,
    stops_ignored=True,
    prefill_token=True,
    prefill_usage=False,
    empty_model_known=True,
    probe_code=UNIMPLEMENTED,
    forgets_unknown_aborts=True,
    session_abort_code=None,
    lora_rpc_code=UNIMPLEMENTED,
    kv_sources=Key.REFUSED,
    per_rank_load=False,
)

# Drafts of the wire, spoken without a deviation.
DRAFT = Behaviour(draft=True, schema_release="4def7c5b1d2e3f40516273849a0b1c2d3e4f5061")
SINGLE = Behaviour(draft=True, single_service=True, schema_release="d0f29fe")

BEHAVIOURS = {
    "clean": CLEAN,
    "trtllm": TRTLLM,
    "mocker": MOCKER,
    "draft": DRAFT,
    "single": SINGLE,
}


def with_only(name: str, source: Behaviour) -> Behaviour:
    """A right engine with one field of `source`."""
    return replace(CLEAN, **{name: getattr(source, name)})


def deviations(behaviour: Behaviour) -> dict[str, Any]:
    """The fields that differ from a right engine, by name."""
    return {
        field.name: value
        for field in fields(Behaviour)
        if (value := getattr(behaviour, field.name)) != getattr(CLEAN, field.name)
    }
