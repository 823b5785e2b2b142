"""Chooses the model under test and asks the engine about it."""

from __future__ import annotations

import dataclasses

import grpc

from conformance.errors import ConfigError
from conformance.wire.declared import Declared
from conformance.wire.patience import Patience
from oe_wire import v1
from oe_wire.services import METHODS

DISCOVERY_MODEL_INFO = METHODS["openengine.v1.OpenEngineDiscovery/GetModelInfo"]
CONTROL_MODEL_INFO = METHODS["openengine.v1.Control/GetModelInfo"]


def choose_model(patience: Patience, declared: Declared, model: str | None) -> Declared:
    """`declared` with the model to test: `model`, or the first supported one.

    `model` may be a supported name or an alias that the engine knows. Raises ConfigError naming
    the supported models for anything else.
    """
    served = supported_models(declared)
    name = model if model is not None else (served[0] if served else "")
    info = model_info(patience, declared, name)
    if model is not None and model not in served and not _answers_to(info, model):
        raise ConfigError(
            f"model {model!r} is not served",
            source="--model",
            expected="one of " + ", ".join(served) if served else "a name the engine knows",
        )
    return dataclasses.replace(declared, model=info, model_name=name or _own_name(info))


def supported_models(declared: Declared) -> tuple[str, ...]:
    """The model names of EngineInfo or ServerInfo."""
    info = declared.engine_info if declared.engine_info is not None else declared.server_info
    return () if info is None else tuple(info.supported_models)


def model_info(patience: Patience, declared: Declared, name: str) -> v1.ModelInfo | None:
    """GetModelInfo(name), from discovery where it is served; None when the engine refuses."""
    discovery = () if declared.legacy else (DISCOVERY_MODEL_INFO,)
    for method in (*discovery, CONTROL_MODEL_INFO):
        answer = patience.ask(method, v1.GetModelInfoRequest(model=name))
        messages = answer.messages
        if answer.ending.ok and messages and isinstance(messages[0], v1.ModelInfo):
            return messages[0]
        if answer.ending.code is grpc.StatusCode.NOT_FOUND:
            return None
    return None


def _answers_to(info: v1.ModelInfo | None, name: str) -> bool:
    return info is not None and (
        name in {info.model_id, info.served_model_name} or name in info.served_model_aliases
    )


def _own_name(info: v1.ModelInfo | None) -> str:
    return "" if info is None else info.served_model_name or info.model_id
