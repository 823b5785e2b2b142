"""ResetCache: it empties what it says, spares what is in use, and knows only listed kinds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import grpc

from conformance.checks.admin.admin_calls import RESET, resumed
from conformance.checks.check import check
from conformance.checks.core.discovery_calls import answer
from conformance.checks.core.judging import outcome
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import busy, paused
from conformance.model.case import Case
from conformance.oracle.limits import limits_of, window
from conformance.strategies import simple_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Tokens of a prompt that fills several blocks of any engine's cache.
PROMPT_TOKENS = 256
CACHE_KINDS = (
    v1.CACHE_KIND_PREFIX,
    v1.CACHE_KIND_MULTIMODAL,
    v1.CACHE_KIND_ENCODER,
    v1.CACHE_KIND_CONNECTOR,
)


def _listed(declared: Declared) -> list[int]:
    scope = declared.engine_scope
    kinds = () if scope is None else scope.admin.cache_kinds
    return [kind for kind in dict.fromkeys(kinds) if kind != v1.CACHE_KIND_UNSPECIFIED]


def _prompt(declared: Declared) -> v1.GenerateRequest:
    """A prompt of several blocks, the same each time."""
    limits = limits_of(declared)
    size = min(PROMPT_TOKENS, window(limits) // 2)
    if limits.token_input:
        return simple_request(declared, tokens=size)
    return simple_request(declared, prompt="tell me " * (size // 2))


def _states(declared: Declared) -> Iterable[Case]:
    states = ("idle", "paused", "busy")
    return [Case(_prompt(declared), params={"state": state}) for state in states]


@check(
    "OE-ADM-013",
    table=_states,
    advice="Forget every cached block that no running request holds, and answer OK; or refuse with "
    "FAILED_PRECONDITION as long as requests run.",
)
def prefix_cache_emptied(probe: Probe, case: Case) -> None:
    """After ResetCache(PREFIX) a prompt that was cached is computed again."""
    probe.generate(case)
    if not _cached(probe, case):
        probe.skip("an equal prompt is not seen to come from the cache")
    state = case.params["state"]
    if state == "busy":
        call, running = _reset_while_busy(probe)
        _undisturbed(probe, running)
    else:
        with paused(probe) if state == "paused" else nullcontext():
            call = probe.call(RESET, v1.ResetCacheRequest(kinds=[v1.CACHE_KIND_PREFIX]))
    if state == "busy" and call.ending.code is grpc.StatusCode.FAILED_PRECONDITION:
        return
    if not call.ending.ok:
        probe.fail(f"OK from ResetCache on an engine that is {state}", describe(call), call)
    if cached := _cached(probe, case):
        probe.fail("no cached token after ResetCache", f"{cached}", call)


def _cached(probe: Probe, case: Case) -> int:
    """Tokens of the prompt that came from the cache; 0 when that is not told."""
    call = probe.generate(case)
    usages = [
        message.usage
        for message in call.messages
        if isinstance(message, v1.GenerateResponse) and message.HasField("usage")
    ]
    if not usages:
        return 0
    if usages[-1].cached_prompt_tokens > usages[-1].prompt_tokens:
        probe.skip("more tokens are cached than the prompt has, which is not this row's matter")
    return usages[-1].cached_prompt_tokens


def _reset_while_busy(probe: Probe) -> tuple[Transcript, Transcript]:
    with busy(probe) as live:
        call = probe.call(RESET, v1.ResetCacheRequest(kinds=[v1.CACHE_KIND_PREFIX]))
        live.wait_event(len(live.events) + 1, timeout=probe.pace.generate_limit(1))
        live.cancel()
        return call, probe.finish(live)


def _undisturbed(probe: Probe, running: Transcript) -> None:
    """The running request went on until it was cancelled, or finished by itself."""
    if not running.actions and not running.ending.ok:
        probe.fail("a running request to go on over ResetCache", outcome(running), running)


def _kinds(declared: Declared) -> Iterable[Case]:
    listed = _listed(declared)
    cases = [Case(params={"kinds": [kind]}) for kind in listed]
    cases += [Case(params={"kinds": []}), Case(params={"kinds": [v1.CACHE_KIND_UNSPECIFIED]})]
    return cases + [Case(params={"kinds": [kind]}) for kind in CACHE_KINDS if kind not in listed]


@check(
    "OE-ADM-014",
    table=_kinds,
    advice="Refuse a kind that cache_kinds does not list, and answer with the kinds that were "
    "emptied: all listed ones for an empty request.",
)
def kinds_as_listed(probe: Probe, case: Case) -> None:
    """Listed kinds are reset and named in the answer, others are refused."""
    kinds, listed = case.params["kinds"], _listed(probe.declared)
    with resumed(probe):
        call = probe.call(RESET, v1.ResetCacheRequest(kinds=kinds))
    if not set(kinds) <= set(listed):
        because = "the kind is not in cache_kinds"
        probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because=because)
        return
    response = answer(call, v1.ResetCacheResponse)
    if response is None:
        probe.fail("OK for a listed kind of cache", describe(call), call)
    expected = sorted(kinds or listed)
    if sorted(response.reset) != expected:
        wanted = f"the kinds {_names(expected)} in the answer"
        probe.fail(wanted, f"{_names(response.reset)}", call)


def _names(kinds: Iterable[int]) -> list[str]:
    known = v1.CacheKind.DESCRIPTOR.values_by_number
    return [known[kind].name if kind in known else str(kind) for kind in kinds]
