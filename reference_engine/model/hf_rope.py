"""The rotary frequencies in the config.json of a Hugging Face directory, older and newer form."""

from collections.abc import Mapping
from typing import Any

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.fields import Fields
from reference_engine.model.rope import LinearScaling, Llama3Scaling, RopeScaling

PLACES = ("rope_parameters", "rope_scaling")
"""Transformers 5 keeps everything in the first, older files the scaling alone in the second."""
SUPPORTED = "default, linear, llama3"


def rope(config: Fields) -> tuple[float, RopeScaling | None]:
    """The base of the frequencies and their scaling.

    Raises UnsupportedModelError for another kind of scaling, CheckpointError for a wrong field.
    """
    _refuse_partial(config)
    place = next((name for name in PLACES if config.values.get(name) is not None), None)
    if place is None:
        return config.positive_float("rope_theta", 10000.0), None
    values = config.values[place]
    if not isinstance(values, Mapping):
        raise CheckpointError(f"{config.source}: {place} is {values!r}, expected an object")
    if any(isinstance(value, Mapping) for value in values.values()):
        raise UnsupportedModelError(
            f"{config.source}: {place} differs by kind of layer, supported: one for all layers"
        )
    fields = Fields(f"{config.source}: {place}", values)
    _refuse_partial(fields)
    source = fields if "rope_theta" in values else config
    return source.positive_float("rope_theta", 10000.0), _scaling(config, place, fields)


def _scaling(config: Fields, place: str, fields: Fields) -> RopeScaling | None:
    kind: Any = fields.values.get("rope_type", fields.values.get("type", "default"))
    match kind:
        case "default":
            return None
        case "linear":
            return LinearScaling(fields.positive_float("factor"))
        case "llama3":
            return _llama3(fields)
    raise UnsupportedModelError(
        f"{config.source}: {place}.rope_type is {kind!r}, supported: {SUPPORTED}"
    )


def _llama3(fields: Fields) -> Llama3Scaling:
    scaling = Llama3Scaling(
        factor=fields.positive_float("factor"),
        low_freq_factor=fields.positive_float("low_freq_factor"),
        high_freq_factor=fields.positive_float("high_freq_factor"),
        original_max_position=fields.positive_int("original_max_position_embeddings"),
    )
    if scaling.high_freq_factor <= scaling.low_freq_factor:
        raise CheckpointError(
            f"{fields.source}: high_freq_factor is {scaling.high_freq_factor}, expected more than "
            f"low_freq_factor, {scaling.low_freq_factor}"
        )
    return scaling


def _refuse_partial(fields: Fields) -> None:
    share = fields.values.get("partial_rotary_factor")
    if share not in (None, 1, 1.0):
        raise UnsupportedModelError(
            f"{fields.source}: partial_rotary_factor is {share!r}, supported: 1"
        )
