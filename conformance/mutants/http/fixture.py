"""How the right server is described to the suite, and options to judge it or a mutant of it."""

from __future__ import annotations

from functools import cache
from importlib import resources

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.mutants.http.ask import CONTEXT_TOKENS
from conformance.runner.budget import BUDGETS, Budget
from conformance.runner.http_session import HttpOptions
from conformance.runner.selection import Selection
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.declared import HARMLESS
from conformance.runtimes.profile import Effect, RuntimeProfile
from conformance.runtimes.registry import load_runtime


@cache
def fixture_profile() -> RuntimeProfile:
    """The runtime profile of the right server."""
    return load_runtime(resources.files(__package__) / "fixture@1.toml", http_registry())


def options_for(
    origin: str,
    *,
    scripted: bool = True,
    budget: Budget = BUDGETS["standard"],
    ids: tuple[str, ...] = (),
    jobs: int = 1,
    seed: int = 0,
    time_limit: float | None = None,
) -> HttpOptions:
    """Options for a server of this package."""
    return HttpOptions(
        HttpTarget(parse_origin(origin)),
        fixture_profile(),
        scripted=scripted,
        allowed=HARMLESS | {Effect.CONSUMPTIVE, Effect.INFERENCE_CANARY},
        context_tokens=CONTEXT_TOKENS,
        budget=budget,
        selection=Selection(ids=ids),
        jobs=jobs,
        seed=seed,
        time_limit=time_limit,
    )
