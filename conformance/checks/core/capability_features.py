"""Whether the data plane does what Capabilities say about features and their combinations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import grpc

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import capabilities
from conformance.checks.core.judging import BUSY, engine_errors, outcome, send_cut
from conformance.checks.probe import Probe
from conformance.laws.errors import rejection_code
from conformance.model.case import Case
from conformance.model.registry import default_registry
from conformance.strategies.feature_use import GUIDES, using
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# A vendor's token: a reversed domain name, so at least three parts.
VENDOR_TOKEN = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*){2,}")
UNSUPPORTED = "UNSUPPORTED_FEATURE"
# Statuses by which engines say that they lack something.
LACKING = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.FAILED_PRECONDITION,
    }
)


def _combinations(declared: Declared) -> Iterable[Case]:
    scope = declared.capabilities
    listed = () if scope is None else scope.incompatible
    return [Case(params={"at": at}) for at in range(len(listed))]


@check(
    "OE-CORE-CAP-019",
    table=_combinations,
    advice="List tokens of the feature registry, at least two in each combination, and test the "
    "whole combination before admission.",
)
def combination_refused(probe: Probe, case: Case) -> None:
    """A combination has two known tokens at least, and a request with all of them is refused."""
    scope = capabilities(probe, probe.declared.model_name)
    combinations = scope.message.incompatible
    if case.params["at"] >= len(combinations):
        probe.skip("the combination is not listed any more")
    features = list(dict.fromkeys(combinations[case.params["at"]].features))
    known = default_registry().features
    for token in features:
        if token not in known and VENDOR_TOKEN.fullmatch(token) is None:
            wanted = "tokens of the feature registry, or a vendor's"
            probe.fail(wanted, repr(token), scope.call)
    if len(features) < 2:
        probe.fail("at least two distinct tokens", f"{features}", scope.call)
    built = using(probe.declared, features)
    if built is None:
        probe.skip(f"no Generate request alone uses {features}")
    call = send_cut(probe, built, probe.prepared(built))
    wanted = f"{', '.join(features)} cannot be combined"
    probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because=wanted)


def _flags(declared: Declared) -> Iterator[tuple[str, bool]]:
    """Features of Generate requests, and what is reported of each; unreported ones are left out.

    Options that are reported false have rows of their own (GEN-008, 012, 023 and 030), but for
    log probabilities.
    """
    info = v1.ModelInfo() if declared.model is None else declared.model
    offers = info.generation
    for feature, supported in (
        ("input.text", info.supports_text_input),
        ("input.token_ids", info.supports_token_ids_input),
        ("request.num_sequences", offers.max_num_sequences >= 2),
        ("request.stop_in_output", offers.supports_stop_in_output),
        ("request.cache_salt", offers.supports_cache_salt),
        ("request.prefix_cache_bypass", offers.supports_prefix_cache_bypass),
        ("request.guided", offers.guided_decoding.supported),
    ):
        if supported:
            yield feature, True
    for feature, logprobs in (
        ("request.prompt_logprobs", offers.prompt_logprobs),
        ("request.output_logprobs", offers.output_logprobs),
    ):
        if logprobs.HasField("supported"):
            yield feature, logprobs.supported


def _feature_cases(declared: Declared) -> Iterable[Case]:
    found: list[Case] = []
    for feature, supported in _flags(declared):
        case = using(declared, [feature])
        if case is not None:
            params = {"feature": feature, "supported": supported}
            found.append(replace(case, params=params))
    return [*found, *_guide_cases(declared)]


def _guide_cases(declared: Declared) -> Iterator[Case]:
    """One case for each listed mode: an engine may have lost one backend of several."""
    info = v1.ModelInfo() if declared.model is None else declared.model
    guided = info.generation.guided_decoding
    for mode, guide in GUIDES.items():
        number = v1.GuidedDecodingMode.Value(f"GUIDED_DECODING_MODE_{mode.upper()}")
        case = using(declared, [])
        listed = guided.supported and number in guided.modes
        if listed and case is not None and isinstance(case.request, v1.GenerateRequest):
            guide(case.request.guided)
            yield replace(case, params={"feature": f"guide {mode}", "supported": True})


@check(
    "OE-CORE-CAP-025",
    table=_feature_cases,
    advice="Let validation and Capabilities read the same switches, so that what is reported "
    "supported is accepted and what is reported unsupported is refused.",
)
def features_as_reported(probe: Probe, case: Case) -> None:
    """A feature is taken when it is reported supported, and refused when it is reported not."""
    feature = case.params["feature"]
    call = send_cut(probe, case, probe.prepared(case))
    if call.rejected and call.ending.code in BUSY:
        probe.skip(f"the engine was busy: {call.ending.code.name}")
    if not case.params["supported"]:
        wanted = f"{feature} is reported unsupported"
        probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because=wanted)
    elif _called_unsupported(call):
        probe.fail(f"{feature} to be taken: it is reported supported", outcome(call), call)


def _called_unsupported(call: Transcript) -> bool:
    """Whether the engine says that it lacks what the request asked for."""
    if any(error.code == v1.ERROR_CODE_UNSUPPORTED_FEATURE for _, error in engine_errors(call)):
        return True
    if not call.rejected:
        return False
    code = rejection_code(call)
    return code == UNSUPPORTED or (code is None and call.ending.code in LACKING)
