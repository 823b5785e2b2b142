"""Mutants of what a load stream grants: intervals and ranks."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import edited_for, refusal, repaired
from conformance.mutants.load_streams import WATCH_LOAD, limits_of
from conformance.mutants.mutant import Answers, Exchange, Mutant

TICK_MS = 10


async def _own_default(exchange: Exchange) -> Answers:
    limits = await limits_of(exchange)
    if not exchange.request.HasField("min_interval_ms"):
        default = limits.min_interval_default_ms
        step = -1 if default == limits.min_interval_ceiling_ms else 1
        exchange.request.min_interval_ms = default + step
    async for response in exchange.upstream():
        yield response


def _zero_is_absent(request: Any) -> None:
    if not request.min_interval_ms:
        request.ClearField("min_interval_ms")


async def _still_beating(exchange: Exchange) -> Answers:
    """Zero is reported as granted, and the timer runs at its default."""
    off = exchange.request.HasField("heartbeat_interval_ms") and not (
        exchange.request.heartbeat_interval_ms
    )
    if off:
        exchange.request.ClearField("heartbeat_interval_ms")
    async for response in exchange.upstream():
        if off and response.HasField("settings"):
            response.settings.effective_heartbeat_interval_ms = 0
            response.settings.heartbeat_interval_clamped = False
        yield response


async def _refuses_outside(exchange: Exchange) -> Answers:
    limits, wish = await limits_of(exchange), exchange.request.min_interval_ms
    low, high = limits.min_interval_floor_ms, limits.min_interval_ceiling_ms
    if wish and not low <= wish <= high:
        expected = f"min_interval_ms {wish}, expected {low} to {high}"
        raise refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", expected)
    async for response in exchange.upstream():
        yield response


def _unflagged(response: Any, request: Any) -> None:
    # Heartbeats of which nothing is wished are raised, not clamped: another row.
    if response.HasField("settings") and request.min_interval_ms:
        response.settings.min_interval_clamped = False


async def _whole_ticks(exchange: Exchange) -> Answers:
    wish = exchange.request.min_interval_ms
    limits = await limits_of(exchange)
    if limits.min_interval_floor_ms < wish < limits.min_interval_ceiling_ms:
        exchange.request.min_interval_ms = -(-wish // TICK_MS) * TICK_MS
    async for response in exchange.upstream():
        yield response


async def _not_raised(exchange: Exchange) -> Answers:
    limits, wish = await limits_of(exchange), exchange.request.heartbeat_interval_ms
    inside = limits.heartbeat_floor_ms <= wish <= limits.heartbeat_ceiling_ms
    async for response in exchange.upstream():
        if inside and response.HasField("settings"):
            response.settings.effective_heartbeat_interval_ms = wish
            response.settings.heartbeat_interval_clamped = False
        yield response


def _ranks_dropped(request: Any) -> None:
    if not request.include_per_rank:
        del request.data_parallel_ranks[:]


MUTANTS = (
    Mutant(
        "load-default-of-its-own",
        "OE-LOAD-023",
        "The default interval is a constant that nobody changed with the advertised one.",
        {WATCH_LOAD: _own_default},
    ),
    Mutant(
        "load-zero-is-default",
        "OE-LOAD-024",
        "Presence is lost, so that an interval of zero is read as none.",
        {WATCH_LOAD: repaired(_zero_is_absent)},
    ),
    Mutant(
        "load-heartbeat-not-off",
        "OE-LOAD-025",
        "Heartbeats that were turned off are still sent at the default interval.",
        {WATCH_LOAD: _still_beating},
    ),
    Mutant(
        "load-interval-refused",
        "OE-LOAD-026",
        "An interval outside the bounds is an invalid argument.",
        {WATCH_LOAD: _refuses_outside},
    ),
    Mutant(
        "load-clamping-hidden",
        "OE-LOAD-026",
        "An interval is clamped and the flag is forgotten.",
        {WATCH_LOAD: edited_for(_unflagged)},
    ),
    Mutant(
        "load-interval-rounded",
        "OE-LOAD-027",
        "Intervals are rounded up to whole ticks of the sampler.",
        {WATCH_LOAD: _whole_ticks},
    ),
    Mutant(
        "load-heartbeat-not-raised",
        "OE-LOAD-028",
        "A heartbeat interval below the interval between snapshots is reported as it was asked.",
        {WATCH_LOAD: _not_raised},
    ),
    Mutant(
        "load-ranks-ignored",
        "OE-LOAD-043",
        "Ranks without include_per_rank are ignored.",
        {WATCH_LOAD: repaired(_ranks_dropped)},
    ),
)
