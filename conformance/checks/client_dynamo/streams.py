"""Requests as a sidecar makes them, and what it demands of their streams (needs 18 to 30)."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.check import Check
from conformance.checks.client_dynamo import rules
from conformance.checks.client_dynamo.need import (
    known_stop_tokens,
    need,
    sidecar_request,
    streamed,
)
from conformance.checks.core.judging import completed
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.wire.declared import Declared
from oe_wire import v1

# Annotations that a router leaves behind, and the trace that a request belongs to.
METADATA = (
    ("x-dynamo-annotation", "llm_metrics"),
    ("nvext-worker", "backend-1"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "dynamo=t61rcWkgMzE"),
)


def _one(declared: Declared) -> Iterable[Case]:
    yield Case(sidecar_request(declared))


def _one_and_several(declared: Declared) -> Iterable[Case]:
    """One output, and two where the engine reports that it makes them."""
    yield Case(sidecar_request(declared))
    if declared.max_num_sequences > 1:
        yield Case(sidecar_request(declared, max_tokens=4, sequences=2))


def _with_logprobs(declared: Declared) -> Iterable[Case]:
    request = sidecar_request(declared)
    request.response.return_output_logprobs = True
    offer = v1.LogprobCapabilities()
    if declared.model is not None:
        offer = declared.model.generation.output_logprobs
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N in offer.candidate_selection_modes:
        request.response.output_candidates.top_n = 1
    yield Case(request)


def _options(declared: Declared) -> Iterable[Case]:
    """Every option that the sidecar copies from a frontend's request."""
    request = sidecar_request(declared)
    request.sampling.CopyFrom(
        v1.SamplingParams(temperature=0.7, top_p=0.9, top_k=-1, seed=42, frequency_penalty=0.1)
    )
    request.stopping.conditions.extend(
        v1.StopCondition(stop_token_id=token) for token in known_stop_tokens(declared)
    )
    request.stopping.ignore_eos = False
    yield Case(request)


def _prefill(declared: Declared) -> Iterable[Case]:
    yield Case(sidecar_request(declared, max_tokens=1))


def _annotated(declared: Declared) -> Iterable[Case]:
    yield Case(sidecar_request(declared), metadata=METADATA)


@need(
    18,
    advice="Take empty option groups as absent ones, and top_k -1 as off.",
    table=_options,
)
def serves_the_sidecars_request(probe: Probe, case: Case) -> None:
    """A request with everything that a sidecar sets is served."""
    completed(probe, probe.generate(case))


@need(
    19,
    advice="Read the metadata keys that the protocol defines and ignore every other.",
    table=_annotated,
)
def serves_annotated_requests(probe: Probe, case: Case) -> None:
    """Foreign metadata is ignored."""
    completed(probe, probe.generate(case))


CHECKS: tuple[Check, ...] = (
    streamed(
        20,
        advice="Copy request_id into every response: the sidecar ends the stream otherwise.",
        table=_one,
        rule=rules.names_its_request,
    ),
    streamed(
        21,
        advice="Send no response without an event.",
        table=_one,
        rule=rules.sets_an_event,
    ),
    streamed(
        22,
        advice="Set output_index on every TokenOutput, also to 0.",
        table=_one_and_several,
        rule=rules.tokens_have_their_output,
    ),
    streamed(
        23,
        advice="Finish each output once, with output_index and a reason.",
        table=_one_and_several,
        rule=rules.ends_are_known,
    ),
    streamed(
        24,
        advice="Put usage on the terminal event of the last output alone.",
        table=_one_and_several,
        rule=rules.usage_at_the_end,
    ),
    streamed(
        25,
        advice="Send PromptOutput to those only who ask for it.",
        table=_one,
        rule=rules.nothing_about_the_prompt,
    ),
    streamed(
        26,
        advice="Never close a stream before its outputs have their terminal events: the sidecar "
        "takes the whole worker down.",
        table=_one_and_several,
        rule=rules.ends_with_a_terminal,
    ),
    streamed(
        27,
        advice="Set logprob on every record, the first of a stream and of a handed-over request "
        "included.",
        table=_with_logprobs,
        rule=rules.tokens_have_logprobs,
    ),
    streamed(
        28,
        advice="Keep the first token of a prefill for the decode side.",
        table=_prefill,
        rule=rules.prefill_is_silent,
    ),
    streamed(
        29,
        advice="Fill in the session: its id, the connector's backend, and endpoints that can be "
        "connected to.",
        table=_prefill,
        rule=rules.session_is_complete,
    ),
    streamed(
        30,
        advice="Put usage on PrefillReady.",
        table=_prefill,
        rule=rules.prefill_is_accounted,
    ),
)
