"""Mutants of health: statuses that do not follow, watchers that are not told, probes that lie."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, repaired, when
from conformance.mutants.methods import (
    CHECK,
    CONTROL_HEALTH,
    GENERATE,
    PAUSE,
    RESUME,
    WATCH,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.pausing import paused, while_paused
from conformance.mutants.reading import ticking
from oe_wire import health, v1

Response = health.HealthCheckResponse
INFERENCE = "openengine.v1.Inference"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
LIST = "grpc.health.v1.Health/List"
# Streams above which an engine calls itself full, and watches above which it refuses more.
FULL = 6
MANY_WATCHES = 40
# A proxy between the watcher and the engine gives up a silent call after this.
IDLE_LIMIT = 0.5


def of(*services: str) -> Any:
    """Whether a health request is about one of these names."""
    return lambda request: request.service in services


SERVING = answered(lambda _: Response(status=Response.SERVING))
NOT_SERVING = answered(lambda _: Response(status=Response.NOT_SERVING))


async def _first_only(exchange: Exchange) -> Answers:
    """The status is read when the watch begins."""
    first = True
    async for response in exchange.upstream():
        if first:
            yield response
        first = False


async def _never_up(exchange: Exchange) -> Answers:
    """Watchers are told of the bad news; the good is left to the next watch."""
    first = True
    async for response in exchange.upstream():
        if first or response.status == Response.NOT_SERVING:
            yield response
        first = False


async def _said_twice(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        yield response
        if response.status != Response.SERVICE_UNKNOWN:
            yield response


async def _run_in_pause(exchange: Exchange) -> Answers:
    """Requests that come during a pause are let through to the engine."""
    if not paused(exchange):
        async for response in exchange.upstream():
            yield response
        return
    request_id = exchange.request.request_id
    usage = v1.Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2)
    token = v1.TokenOutput(output_index=0, tokens=[v1.TokenInfo(token_id=1)])
    yield v1.GenerateResponse(request_id=request_id, token=token)
    finished = v1.GenerationFinished(output_index=0, reason=v1.FINISH_REASON_LENGTH)
    yield v1.GenerateResponse(request_id=request_id, finished=finished, usage=usage)


async def _resumed(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        exchange.state["late"] = True
        exchange.state["paused"] = False
        yield response


async def _admits_late(exchange: Exchange) -> Answers:
    """The status goes up at once, and the door opens with the next request."""
    if exchange.state.pop("late", False):
        raise Refused(grpc.StatusCode.UNAVAILABLE, "generation is paused")
    async for response in exchange.upstream():
        yield response


def _not_ready(message: Any) -> None:
    message.state = v1.HEALTH_STATE_NOT_READY


def _ready(message: Any) -> None:
    message.state = v1.HEALTH_STATE_READY


def _always_probed(request: Any) -> None:
    request.include_inference_probe = True


def _without_probe(message: Any) -> None:
    left = [item for item in message.checks if item.name != "inference_probe"]
    del message.checks[:]
    message.checks.extend(left)


def _role_fits(message: Any) -> None:
    for item in message.checks:
        if item.name == "role":
            item.state = v1.HEALTH_STATE_READY


def _no_model(request: Any) -> None:
    request.model = ""


def _probe_fine(message: Any) -> None:
    for item in message.checks:
        if item.name == "inference_probe":
            item.state = v1.HEALTH_STATE_READY
    if any(item.name == "inference_probe" for item in message.checks):
        message.state = v1.HEALTH_STATE_READY


async def _idle_watch_closed(exchange: Exchange) -> Answers:
    """A watch that says nothing is closed."""
    async with ticking(exchange.upstream(), IDLE_LIMIT) as answers:
        async for response in answers:
            if response is None:
                return
            yield response


async def _few_watches(exchange: Exchange) -> Answers:
    """Each watch has a thread, and the pool has so many."""
    watches = exchange.state.setdefault("watches", [0])
    if watches[0] >= MANY_WATCHES:
        raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watches")
    watches[0] += 1
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        watches[0] -= 1


async def _silent_end(exchange: Exchange) -> Answers:
    """Shutdown closes the watches, and sets the status afterwards. Pauses are told."""
    async for response in exchange.upstream():
        if response.status != Response.NOT_SERVING or exchange.state.get("pausing"):
            yield response


async def _pausing(exchange: Exchange) -> Answers:
    exchange.state["pausing"] = True
    async for response in exchange.upstream():
        yield response


def _unlisted(message: Any) -> None:
    message.statuses.pop("", None)


def _listed_down(message: Any) -> None:
    message.statuses[INFERENCE].status = Response.NOT_SERVING


async def _counted(exchange: Exchange) -> Answers:
    streams = exchange.state.setdefault("streams", [0])
    streams[0] += 1
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        streams[0] -= 1


async def _full_is_down(exchange: Exchange) -> Answers:
    full = exchange.state.get("streams", [0])[0] >= FULL
    async for response in exchange.upstream():
        if full:
            response.status = Response.NOT_SERVING
        yield response


MUTANTS = (
    Mutant(
        "watch-tells-once",
        "OE-CORE-HEALTH-006",
        "A watch sends the status it began with and nothing more.",
        {WATCH: _first_only},
        # Nobody is told of the shutdown either.
        frozenset({"OE-CORE-HEALTH-018"}),
    ),
    Mutant(
        "watch-not-told-of-recovery",
        "OE-CORE-HEALTH-006",
        "A watch is told of a pause, and not of its end.",
        {WATCH: _never_up},
    ),
    Mutant(
        "watch-repeats",
        "OE-CORE-HEALTH-007",
        "Every set of the status is written to the watchers, changed or not.",
        {WATCH: _said_twice},
    ),
    Mutant(
        "paused-still-serving",
        "OE-CORE-HEALTH-009",
        "The data plane stays SERVING while generation is paused.",
        while_paused({CHECK: when(of("", INFERENCE), SERVING)}),
        # The other views of the same state.
        frozenset({"OE-CORE-HEALTH-012", "OE-ADM-003"}),
    ),
    Mutant(
        "paused-discovery-down",
        "OE-CORE-HEALTH-009",
        "One status stands for all services, discovery included.",
        while_paused({CHECK: when(of(DISCOVERY), NOT_SERVING)}),
    ),
    Mutant(
        "empty-name-always-serving",
        "OE-CORE-HEALTH-010",
        "The empty name says that the process is alive.",
        while_paused({CHECK: when(of(""), SERVING)}),
    ),
    Mutant(
        "pause-lets-work-in",
        "OE-CORE-HEALTH-011",
        "A pause stops the running requests, and new ones get past it.",
        while_paused({}) | {GENERATE: _run_in_pause},
        # The pause's own row about admission.
        frozenset({"OE-ADM-008"}),
    ),
    Mutant(
        "admission-opens-late",
        "OE-CORE-HEALTH-011",
        "SERVING is set before requests are admitted again.",
        {RESUME: _resumed, GENERATE: _admits_late},
    ),
    Mutant(
        "control-health-not-ready",
        "OE-CORE-HEALTH-012",
        "Control.Health has a state of its own, which nobody sets to READY.",
        {CONTROL_HEALTH: edited(_not_ready)},
    ),
    Mutant(
        "control-health-ready-in-pause",
        "OE-CORE-HEALTH-012",
        "Control.Health does not know of pauses.",
        while_paused({CONTROL_HEALTH: edited(_ready)}),
    ),
    Mutant(
        "health-always-probes",
        "OE-CORE-HEALTH-014",
        "Every health call runs a token through the model.",
        {CONTROL_HEALTH: repaired(_always_probed)},
    ),
    Mutant(
        "probe-without-check",
        "OE-CORE-HEALTH-014",
        "The probe changes the state, and is not listed among the checks.",
        {CONTROL_HEALTH: edited(_without_probe)},
    ),
    Mutant(
        "probe-of-any-model",
        "OE-CORE-HEALTH-015",
        "The name of the model is echoed and not looked up.",
        {CONTROL_HEALTH: repaired(_no_model)},
    ),
    Mutant(
        "any-role-ready",
        "OE-CORE-HEALTH-015",
        "The role that was asked for is reported as ready, whatever the engine's own is.",
        {CONTROL_HEALTH: edited(_role_fits)},
    ),
    Mutant(
        "stuck-engine-ready",
        "OE-CORE-HEALTH-016",
        "A probe that was submitted counts as one that has passed.",
        {CONTROL_HEALTH: edited(_probe_fine)},
    ),
    Mutant(
        "idle-watch-closed",
        "OE-CORE-HEALTH-017",
        "A watch on which nothing happens is closed by an idle limit.",
        {WATCH: when(of(""), _idle_watch_closed)},
    ),
    Mutant(
        "few-watches",
        "OE-CORE-HEALTH-017",
        "Every watch takes a thread of a small pool.",
        {WATCH: _few_watches},
    ),
    Mutant(
        "shutdown-untold",
        "OE-CORE-HEALTH-018",
        "A stopping engine closes its watches without a word.",
        {WATCH: _silent_end, PAUSE: _pausing},
    ),
    Mutant(
        "empty-name-unlisted",
        "OE-CORE-HEALTH-019",
        "The list has the services and not the empty name.",
        {LIST: edited(_unlisted)},
    ),
    Mutant(
        "list-disagrees",
        "OE-CORE-HEALTH-019",
        "The list is made when the engine starts, before it serves.",
        {LIST: edited(_listed_down)},
    ),
    Mutant(
        "full-engine-down",
        "OE-CORE-HEALTH-020",
        "An engine with no free place says that it does not serve.",
        {GENERATE: _counted, CHECK: _full_is_down},
    ),
    Mutant(
        "full-engine-down-on-watch",
        "OE-CORE-HEALTH-020",
        "A busy engine tells new watchers that it does not serve.",
        {GENERATE: _counted, WATCH: _full_is_down},
    ),
)
