"""What drawn requests carry besides the prompt: guides, cache options and hints."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from conformance.oracle import expect
from conformance.oracle.guides import Quality, quality
from conformance.strategies import Feature, cases, requests
from conformance.wire.declared import Declared
from oe_wire import v1
from tests.conformance.engines import full, legacy

SEARCH = settings(
    # The rarest of what is looked for is one request in a few hundred.
    max_examples=5000,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
MODES = ("CHOICE", "REGEX", "JSON_SCHEMA", "JSON_OBJECT", "EBNF_GRAMMAR", "STRUCTURAL_TAG")


def able() -> Declared:
    """An engine that offers every guide and every option of the cache."""
    declared = full()
    if declared.model is not None:
        generation = declared.model.generation
        generation.supports_cache_salt = generation.supports_prefix_cache_bypass = True
        generation.guided_decoding.supported = True
        generation.guided_decoding.modes.extend(
            v1.GuidedDecodingMode.Value(f"GUIDED_DECODING_MODE_{mode}") for mode in MODES
        )
    return declared


WANTED: dict[str, Callable[[v1.GenerateRequest], bool]] = {
    "a guide": lambda request: request.HasField("guided"),
    "a hint": lambda request: bool(request.extra.fields),
    "the bypass": lambda request: request.kv.bypass_prefix_cache,
    "the bypass spelt out as false": lambda request: (
        request.kv.HasField("bypass_prefix_cache") and not request.kv.bypass_prefix_cache
    ),
    "a salt": lambda request: request.kv.HasField("cache_salt"),
    "a guide for several outputs": lambda request: (
        request.HasField("guided") and request.sampling.num_sequences > 1
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_options_that_are_offered_are_drawn(name: str) -> None:
    """Each option comes up where the engine offers it, in a request that must be accepted."""
    found = find(requests(able()), WANTED[name], settings=SEARCH)
    assert expect(found, (), able()).accepted


def test_only_good_guides_are_drawn_and_nothing_keeps_them_from_ending() -> None:
    """A drawn guide compiles everywhere and may end its output."""

    @settings(SEARCH, max_examples=60)
    @given(requests(able()))
    def run(request: v1.GenerateRequest) -> None:
        if request.HasField("guided"):
            assert quality(request.guided) is Quality.GOOD
            assert not request.stopping.ignore_eos
            assert request.stopping.min_tokens == 0

    run()


@pytest.mark.parametrize("feature", [Feature.STOP_TEXT, Feature.MIN_TOKENS, Feature.LONG])
def test_no_guide_where_the_length_matters(feature: Feature) -> None:
    """A guide would end the output before what the feature is about."""

    @settings(SEARCH, max_examples=25)
    @given(cases(able(), feature))
    def run(case: object) -> None:
        request = getattr(case, "request", None)
        assert isinstance(request, v1.GenerateRequest)
        assert not request.HasField("guided")

    run()


def test_legacy_engines_get_none_of_it() -> None:
    """They declare too little for any of these options."""

    @settings(SEARCH, max_examples=25)
    @given(requests(legacy()))
    def run(request: v1.GenerateRequest) -> None:
        assert not request.HasField("guided")
        assert not request.HasField("kv")
        assert not request.extra.fields

    run()
