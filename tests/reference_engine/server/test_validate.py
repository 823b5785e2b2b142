"""The rules of validation as properties, without a server."""

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from oe_wire import v1
from reference_engine.server.deployment import Deployment, RequestLimits, ServedModel
from reference_engine.server.description import generation
from reference_engine.server.metadata import metadata_problems
from reference_engine.server.rejection import Rejection
from reference_engine.server.validate import validate

DEPLOYMENT = Deployment(
    instance_id="i",
    version="1",
    started_at_unix_nanos=1,
    model=ServedModel("m", (), vocab_size=100, window=64),
    limits=RequestLimits(),
    kv_block_size=16,
    total_kv_blocks=4,
    max_running=4,
    max_batched_tokens=64,
)


def verdict(**fields) -> Rejection | None:
    request = v1.GenerateRequest(
        request_id="r", model="m", token_ids=v1.TokenIds(ids=[1]), **fields
    )
    return validate(request, (), DEPLOYMENT)


@given(st.floats(), st.floats(), st.floats(), st.floats())
def test_sampling_ranges(temperature, top_p, min_p, repetition):
    """A sampling message is accepted exactly when each number is in its range."""
    sampling = v1.SamplingParams(
        temperature=temperature, top_p=top_p, min_p=min_p, repetition_penalty=repetition
    )
    legal = (
        (math.isfinite(temperature) and temperature >= 0)
        and 0 < top_p <= 1
        and 0 <= min_p <= 1
        and (math.isfinite(repetition) and repetition > 0)
    )
    assert (verdict(sampling=sampling) is None) == legal


def test_prompt_candidates_of_a_large_vocabulary():
    """`all` for a prompt is listed and accepted, or neither."""
    response = v1.ResponseOptions(return_prompt_logprobs=True)
    response.prompt_candidates.all.SetInParent()
    request = v1.GenerateRequest(
        request_id="r", model="m", token_ids=v1.TokenIds(ids=[1]), response=response
    )
    for allowed in (True, False):
        limits = RequestLimits(prompt_candidates_all=allowed)
        problem = validate(request, (), replace(DEPLOYMENT, limits=limits))
        assert (problem is None) == allowed
        modes = generation(limits).prompt_logprobs.candidate_selection_modes
        assert (v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL in modes) == allowed


@given(st.none() | st.integers(0, 70), st.none() | st.integers(0, 70))
def test_token_limits(max_tokens, min_tokens):
    """max_tokens lies in 1..window and min_tokens does not exceed it."""
    stopping = v1.StoppingOptions(max_tokens=max_tokens, min_tokens=min_tokens)
    most = 64 if max_tokens is None else max_tokens
    legal = 1 <= most <= 64 and (min_tokens or 0) <= most
    assert (verdict(stopping=stopping) is None) == legal


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=6), st.integers(-(2**33), 2**33).map(str)))
def test_integers_in_metadata(text):
    """A priority is a decimal 32-bit integer, a rank one below the number of ranks."""
    digits = text.removeprefix("-")
    decimal = digits.isascii() and digits.isdigit()
    priority = [*metadata_problems([("openengine-priority", text)], None)]
    assert (priority == []) == (decimal and -(2**31) <= int(text) < 2**31)
    rank = [*metadata_problems([("openengine-target-dp-rank", text)], None)]
    assert (rank == []) == (digits == text and decimal and int(text) == 0)


@given(st.binary(max_size=60))
def test_any_message_gets_a_verdict(data):
    """Whatever parses is judged without an exception, and a refusal says why."""
    request = v1.GenerateRequest()
    try:
        request.ParseFromString(data)
    except Exception:  # noqa: BLE001  # DecodeError has another class in each implementation
        return
    problem = validate(request, (), DEPLOYMENT)
    assert problem is None or problem.message
