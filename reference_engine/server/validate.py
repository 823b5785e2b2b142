"""Whether a GenerateRequest is acceptable, decided from the request and the deployment alone.

Each function yields what is wrong in its part of the message; the first finding refuses the call.
The prompt's length is checked separately, because a text has to be tokenized for it.
"""

import math
from collections.abc import Iterator, Sequence

from oe_wire import v1
from reference_engine.guided.guides import BACKENDS
from reference_engine.server.deployment import Deployment, RequestLimits
from reference_engine.server.metadata import Metadata, metadata_problems
from reference_engine.server.rejection import (
    Rejection,
    invalid,
    model_not_found,
    role_mismatch,
    unsupported,
)


def validate(
    request: v1.GenerateRequest, metadata: Metadata, deployment: Deployment
) -> Rejection | None:
    """The first reason to refuse the request, or None."""
    return next(_problems(request, metadata, deployment), None)


def _problems(
    request: v1.GenerateRequest, metadata: Metadata, deployment: Deployment
) -> Iterator[Rejection]:
    limits = deployment.limits
    session = request.kv.session.dp_rank if request.kv.HasField("session") else None
    yield from _identity(request, deployment)
    yield from metadata_problems(metadata, session, deployment.data_parallel_size)
    yield from _input(request, deployment)
    yield from _sampling(request.sampling, limits)
    yield from _stopping(request.stopping, deployment)
    yield from _response(request.response, deployment)
    yield from _guided(request, limits)
    yield from _media(request)
    yield from _kv(request.kv)
    if request.lora_name and deployment.lora is None:
        yield unsupported("lora_name is set, but this engine has no adapters")


def _identity(request: v1.GenerateRequest, deployment: Deployment) -> Iterator[Rejection]:
    longest = deployment.limits.max_request_id_bytes
    size = len(request.request_id.encode())
    if not size:
        yield invalid("request_id is empty, expected a unique id")
    if size > longest:
        yield invalid(f"request_id has {size} bytes, expected at most {longest}")
    if not request.model:
        yield invalid("model is empty, expected the name of a served model")
    elif request.model not in deployment.model.names:
        yield model_not_found("model")


def _input(request: v1.GenerateRequest, deployment: Deployment) -> Iterator[Rejection]:
    kind = request.WhichOneof("input")
    if kind is None:
        yield invalid("input is not set, expected prompt or token_ids")
    elif kind == "prompt" and not request.prompt:
        yield invalid("prompt is empty, expected text")
    elif kind == "token_ids":
        ids = request.token_ids.ids
        if not ids:
            yield invalid("token_ids is empty, expected at least one id")
        yield from _vocabulary("token_ids", ids, deployment)


def prompt_problem(
    num_tokens: int, request: v1.GenerateRequest, deployment: Deployment
) -> Rejection | None:
    """What is wrong with a prompt of this many tokens, if anything."""
    window = deployment.model.window
    if num_tokens == 0:
        return invalid("prompt has no tokens, expected text that gives at least one")
    if num_tokens > window:
        return invalid(f"the prompt has {num_tokens} tokens, expected at most {window}")
    start = request.response.prompt_logprob_start
    if start > num_tokens:
        return invalid(
            f"response.prompt_logprob_start is {start}, expected at most the prompt's length"
        )
    return None


def _sampling(sampling: v1.SamplingParams, limits: RequestLimits) -> Iterator[Rejection]:
    if sampling.HasField("num_sequences"):
        count, most = sampling.num_sequences, limits.max_num_sequences
        if not 1 <= count <= most:
            yield invalid(f"sampling.num_sequences is {count}, expected 1 to {most}")
    value = sampling.temperature
    if not math.isfinite(value) or value < 0:
        yield invalid(f"sampling.temperature is {value}, expected a finite number from 0 on")
    value = sampling.top_p
    if sampling.HasField("top_p") and not 0 < value <= 1:
        yield invalid(f"sampling.top_p is {value}, expected above 0 and at most 1")
    if sampling.top_k < -1:
        yield invalid(f"sampling.top_k is {sampling.top_k}, expected -1 or more")
    if not 0 <= sampling.min_p <= 1:
        yield invalid(f"sampling.min_p is {sampling.min_p}, expected 0 to 1")
    value = sampling.repetition_penalty
    if sampling.HasField("repetition_penalty") and not (math.isfinite(value) and value > 0):
        yield invalid(f"sampling.repetition_penalty is {value}, expected finite and above 0")
    for name in ("frequency_penalty", "presence_penalty"):
        value = getattr(sampling, name)
        if not math.isfinite(value):
            yield invalid(f"sampling.{name} is {value}, expected a finite number")


def _stopping(stopping: v1.StoppingOptions, deployment: Deployment) -> Iterator[Rejection]:
    longest = deployment.model.window
    most = longest
    if stopping.HasField("max_tokens"):
        most = stopping.max_tokens
        if not 1 <= most <= longest:
            yield invalid(f"stopping.max_tokens is {most}, expected 1 to {longest}")
    if stopping.min_tokens > most:
        yield invalid(f"stopping.min_tokens is {stopping.min_tokens}, expected at most {most}")
    allowed = deployment.limits.max_stop_conditions
    if len(stopping.conditions) > allowed:
        count = len(stopping.conditions)
        yield invalid(f"stopping.conditions has {count} entries, expected at most {allowed}")
    for number, condition in enumerate(stopping.conditions):
        yield from _stop_condition(number, condition, deployment.limits)


def _stop_condition(
    number: int, condition: v1.StopCondition, limits: RequestLimits
) -> Iterator[Rejection]:
    where = f"stopping.conditions[{number}]"
    kind = condition.WhichOneof("condition")
    if kind is None:
        yield invalid(f"{where} is not set, expected stop_text or stop_token_id")
    if kind == "stop_text":
        size = len(condition.stop_text.encode())
        if not 1 <= size <= limits.max_stop_text_bytes:
            most = limits.max_stop_text_bytes
            yield invalid(f"{where}.stop_text has {size} bytes, expected 1 to {most}")


def _response(response: v1.ResponseOptions, deployment: Deployment) -> Iterator[Rejection]:
    if response.HasField("prompt_candidates"):
        field = "response.prompt_candidates"
        if not response.return_prompt_logprobs:
            yield invalid(f"{field} is set, expected return_prompt_logprobs with it")
        allow_all = deployment.limits.prompt_candidates_all
        yield from _candidates(field, response.prompt_candidates, deployment, allow_all=allow_all)
    if response.HasField("output_candidates"):
        field = "response.output_candidates"
        if not response.return_output_logprobs:
            yield invalid(f"{field} is set, expected return_output_logprobs with it")
        yield from _candidates(field, response.output_candidates, deployment, allow_all=True)


def _candidates(
    field: str, selection: v1.CandidateTokenSelection, deployment: Deployment, *, allow_all: bool
) -> Iterator[Rejection]:
    kind = selection.WhichOneof("selection")
    most = deployment.limits.max_top_n
    if kind is None:
        yield invalid(f"{field} is not set, expected top_n, token_ids or all")
    elif kind == "top_n" and selection.top_n > most:
        yield invalid(f"{field}.top_n is {selection.top_n}, expected at most {most}")
    elif kind == "token_ids":
        yield from _vocabulary(f"{field}.token_ids", selection.token_ids.ids, deployment)
    elif kind == "all" and not allow_all:
        yield unsupported(f"{field}.all is set, expected a mode that the model lists")


def _guided(request: v1.GenerateRequest, limits: RequestLimits) -> Iterator[Rejection]:
    if not request.HasField("guided"):
        return
    kind = request.guided.WhichOneof("guide")
    if kind is None:
        yield invalid("guided has no guide, expected one or no guided at all")
    elif kind not in limits.guided_kinds:
        yield unsupported(f"guided.{kind} is set, expected a mode that the model lists")
    if request.guided.backend not in BACKENDS:
        yield invalid("guided.backend is not known, expected llguidance or nothing")
    if kind == "choice" and not request.guided.choice.choices:
        yield invalid("guided.choice has no choices, expected at least one")


def _media(request: v1.GenerateRequest) -> Iterator[Rejection]:
    for number, item in enumerate(request.media):
        if item.WhichOneof("source") is None:
            yield invalid(f"media[{number}] has no source, expected url, data_uri or raw_bytes")
    if request.media:
        yield unsupported("media is set, but this model takes text only")


def _kv(kv: v1.KvOptions) -> Iterator[Rejection]:
    if kv.HasField("session"):
        yield role_mismatch("kv.session is set, but this engine does not take over sessions")


def _vocabulary(field: str, ids: Sequence[int], deployment: Deployment) -> Iterator[Rejection]:
    size = deployment.model.vocab_size
    if ids and max(ids) >= size:
        place = next(place for place, token_id in enumerate(ids) if token_id >= size)
        # The place and not the id: ids of a prompt are as private as its text.
        yield invalid(f"{field}[{place}] is outside the vocabulary, expected ids below {size}")
