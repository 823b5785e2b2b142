"""Fields of discovery answers that must be true or left out: no placeholder, no empty promise."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    Read,
    answer,
    capabilities,
    engine_facts,
    model_infos,
)
from conformance.checks.probe import Probe
from conformance.model.case import Case
from oe_wire import v1

# The largest value of each unsigned type: what "unknown" or "unlimited" looks like by accident.
SENTINELS = {
    FieldDescriptor.TYPE_UINT32: 2**32 - 1,
    FieldDescriptor.TYPE_UINT64: 2**64 - 1,
}


@check(
    "OE-CORE-DISC-015",
    advice="Leave out a value that the engine does not know or does not limit.",
)
def no_placeholders(probe: Probe, _: Case) -> None:
    """No optional scalar holds the maximum of its type, and no window is zero."""
    reads: list[Read[Message]] = []
    facts = engine_facts(probe)
    reads.append(Read(facts.message, facts.call))
    reads.extend(Read(info.message, info.call) for info in model_infos(probe))
    load = probe.call("Control/GetLoad", v1.GetLoadRequest(include_per_rank=True))
    info = answer(load, v1.LoadInfo)
    if info is not None:
        reads.append(Read(info, load))
    for item in reads:
        for path in _placeholders(item.message):
            probe.fail(f"{path} left out or true", "a placeholder", item.call)


def _placeholders(message: Message, prefix: str = "") -> Iterator[str]:
    """Paths of optional scalars that hold a placeholder, in all submessages of our package."""
    for field, value in message.ListFields():
        path = f"{prefix}{field.name}"
        if _ours(field):
            items = value if field.is_repeated else [value]
            for item in items:
                yield from _placeholders(item, f"{path}.")
        elif not field.is_repeated and field.has_presence and _placeholder(field, value):
            yield path


def _placeholder(field: FieldDescriptor, value: object) -> bool:
    no_window = field.name == "max_context_length" and value == 0
    return no_window or value == SENTINELS.get(field.type)


def _ours(field: FieldDescriptor) -> bool:
    """Whether the field holds messages of the protocol (a Struct holds what it likes)."""
    kind = field.message_type
    return kind is not None and kind.full_name.startswith("openengine.")


@check(
    "OE-CORE-DISC-019",
    advice="Report max_output_tokens as what really fits: at most max_context_length.",
)
def output_fits_context(probe: Probe, _: Case) -> None:
    """max_output_tokens does not exceed max_context_length."""
    compared = False
    for info in model_infos(probe):
        model = info.message
        if not (model.HasField("max_output_tokens") and model.HasField("max_context_length")):
            continue
        if model.max_context_length == 0:
            continue  # a placeholder, which DISC-015 judges
        compared = True
        if model.max_output_tokens > model.max_context_length:
            probe.fail(
                f"max_output_tokens of at most {model.max_context_length}",
                str(model.max_output_tokens),
                info.call,
            )
    if not compared:
        probe.skip("no model reports both max_output_tokens and max_context_length")


@check(
    "OE-CORE-DISC-020",
    advice="Build each capability list from a set of named values, without UNSPECIFIED.",
)
def capability_lists(probe: Probe, _: Case) -> None:
    """No list of enum values in ModelInfo and Capabilities repeats one or holds UNSPECIFIED."""
    reads: list[Read[Message]] = [Read(item.message, item.call) for item in model_infos(probe)]
    if not probe.declared.legacy:
        for scope in dict.fromkeys(("", probe.declared.model_name)):
            item = capabilities(probe, scope)
            reads.append(Read(item.message, item.call))
    if not reads:
        probe.skip("no supported model gave a ModelInfo")
    for read in reads:
        for path, values, specified in _enum_lists(read.message):
            if specified and 0 in values:
                probe.fail(f"{path} without UNSPECIFIED", "UNSPECIFIED in it", read.call)
            if len(set(values)) < len(values):
                probe.fail(f"{path} without repetition", f"the numbers {values}", read.call)


def _enum_lists(message: Message, prefix: str = "") -> Iterator[tuple[str, list[int], bool]]:
    """Path and numbers of every repeated enum, and whether UNSPECIFIED is barred from it.

    The roles of a profile may say UNSPECIFIED: an engine of no fixed role reports just that.
    """
    for field, value in message.ListFields():
        path = f"{prefix}{field.name}"
        if field.enum_type is not None and field.is_repeated:
            yield path, list(value), field.enum_type.full_name != "openengine.v1.EngineRole"
        elif _ours(field):
            for item in value if field.is_repeated else [value]:
                yield from _enum_lists(item, f"{path}.")


@check(
    "OE-CORE-DISC-021",
    advice="Clear the list of modes where `supported` is false.",
)
def unsupported_without_modes(probe: Probe, _: Case) -> None:
    """A capability with supported=false lists no mode; if all are supported, all is well."""
    for info in model_infos(probe):
        for name, supported, modes in _mode_lists(info.message.generation):
            if modes and not supported:
                probe.fail(f"no modes in generation.{name}", f"the modes {modes}", info.call)


def _mode_lists(generation: v1.GenerationCapabilities) -> Iterator[tuple[str, bool, list[int]]]:
    """Name, `supported` and modes of each capability that reports `supported`."""
    guided = generation.guided_decoding
    if guided.HasField("supported"):
        yield "guided_decoding", guided.supported, list(guided.modes)
    for name, logprobs in (
        ("prompt_logprobs", generation.prompt_logprobs),
        ("output_logprobs", generation.output_logprobs),
    ):
        if logprobs.HasField("supported"):
            yield name, logprobs.supported, list(logprobs.candidate_selection_modes)
