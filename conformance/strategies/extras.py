"""What a drawn request carries besides prompt and parameters: cache options, hints, a guide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.oracle.limits import Limits
from conformance.strategies.guides import good_guides
from conformance.wire.declared import Declared
from oe_wire import v1

SALTS = ("a", "tenant-7", "é語")
# Keys that mean something nowhere, with every kind of value that a Struct holds.
HINTS: tuple[dict[str, Any], ...] = (
    {"oe_conform_hint": 1},
    {"oe_conform_hint": None, "oe_conform_other": [True, "x", {"deep": -0.5}]},
)
# One request in so many has a guide: compiling costs, and a guide hides what a model writes.
GUIDED_SHARE = 8

_PERHAPS = st.none() | st.booleans()
_SOME_SALT = st.none() | st.sampled_from(SALTS)
_SOME_HINTS = st.none() | st.sampled_from(HINTS)


def draw_extras(
    draw: st.DrawFn, request: v1.GenerateRequest, declared: Declared, limits: Limits
) -> None:
    """Add options that this engine must take; legacy engines declare too little for any."""
    if declared.legacy:
        return
    _draw_kv(draw, request, limits)
    hints = draw(_SOME_HINTS)
    if hints is not None:
        request.extra.update(hints)


def _draw_kv(draw: st.DrawFn, request: v1.GenerateRequest, limits: Limits) -> None:
    bypass = draw(_PERHAPS)
    if bypass is not None:
        request.kv.bypass_prefix_cache = bypass and bool(limits.cache_bypass)
    if limits.cache_salt and (salt := draw(_SOME_SALT)) is not None:
        request.kv.cache_salt = salt


def draw_guide(draw: st.DrawFn, request: v1.GenerateRequest, declared: Declared) -> None:
    """Now and then a guide, where nothing keeps the output from ending with it."""
    guides = [] if declared.legacy else good_guides(declared)
    stopping = request.stopping
    held = stopping.min_tokens or stopping.ignore_eos or stopping.conditions
    if guides and not held and draw(st.integers(0, GUIDED_SHARE - 1)) == GUIDED_SHARE - 1:
        request.guided.CopyFrom(draw(st.sampled_from(guides)))
