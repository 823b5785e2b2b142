"""The compiled protos against the recorded facts, row by row in both directions."""

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    ServiceDescriptorProto,
)

import oe_wire
from oe_wire.descriptors import FILE_NAMES

PACKAGE = "openengine.v1"
DATA = Path(__file__).parent / "data"
_TYPES = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}

Row = tuple[str, int, str, bool, bool, str | None]
"""name, number, type, repeated, explicit presence, oneof."""


def load(name: str) -> dict[str, Any]:
    """One file of facts from the data directory."""
    facts: dict[str, Any] = json.loads((DATA / name).read_text())
    return facts


def expected_row(fact: dict[str, Any]) -> Row:
    """A field as the facts state it."""
    return (
        fact["name"],
        fact["number"],
        fact["type"],
        fact.get("repeated", False),
        fact.get("optional", False),
        fact.get("oneof"),
    )


def compiled_rows(name: str) -> set[Row]:
    """Every field of a compiled message."""
    message = DescriptorProto()
    oe_wire.pool.FindMessageTypeByName(f"{PACKAGE}.{name}").CopyToProto(message)
    return {_row(message, field) for field in message.field}


def _row(message: DescriptorProto, field: FieldDescriptorProto) -> Row:
    real_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return (
        field.name,
        field.number,
        field.type_name.removeprefix(".").removeprefix(f"{PACKAGE}.") or _TYPES[field.type],
        field.label == FieldDescriptorProto.LABEL_REPEATED,
        field.proto3_optional,
        message.oneof_decl[field.oneof_index].name if real_oneof else None,
    )


def compiled_enum(name: str) -> dict[str, int]:
    """Values of a compiled enum of openengine.v1 by name."""
    enum = EnumDescriptorProto()
    oe_wire.pool.FindEnumTypeByName(f"{PACKAGE}.{name}").CopyToProto(enum)
    return {value.name: value.number for value in enum.value}


RELEASE = load("wire-v0.1.0.json")
RESTORED = load("wire-restored.json")
FIRST_OWN_NUMBER = 100
RELEASE_FILES = ("error", "generation", "kv", "lifecycle", "lora", "model", "server")
OWN_SERVICES = {
    "OpenEngineAdapters": {"LoadLora", "UnloadLora", "ListLoras"},
    "OpenEngineDiscovery": {"GetEngineInfo", "GetModelInfo", "GetCapabilities"},
    "OpenEngineKv": {"Prefill", "ReleaseKvSession", "GetKvEventSources", "SubscribeKvEvents"},
    "OpenEngineObservability": {"GetLoad", "WatchLoad", "SubscribeRuntimeEvents"},
    "OpenEngineTasks": {"Embed", "Classify", "Score"},
    "OpenEngineEncoder": {"Encode", "ReleaseEncoderOutputs", "GenerateEncoded"},
    "OpenEngineSessions": {"OpenSession", "GenerateTurn", "GetSession", "CloseSession"},
    "OpenEngineOrchestration": {"GetPipeline", "Execute", "GetRequestState", "ControlStages"},
    "OpenEngineTesting": {"InjectFault", "ClearFaults", "Reconfigure"},
    "OpenEngineAdmin": {
        "GetAdminState",
        "PauseGeneration",
        "ResumeGeneration",
        "ResetCache",
        "Drain",
        "Sleep",
        "WakeUp",
        "BeginWeightUpdate",
        "ApplyWeightUpdate",
        "FinishWeightUpdate",
        "StartProfile",
        "StopProfile",
    },
}
ALIASES = {
    "GetModelInfo": "OpenEngineDiscovery",
    "GetLoad": "OpenEngineObservability",
    "GetKvEventSources": "OpenEngineKv",
    "SubscribeKvEvents": "OpenEngineKv",
    "LoadLora": "OpenEngineAdapters",
    "UnloadLora": "OpenEngineAdapters",
    "ListLoras": "OpenEngineAdapters",
}


def compiled_service(name: str) -> dict[str, dict[str, object]]:
    """RPCs of a compiled service in the shape of the facts."""
    service = ServiceDescriptorProto()
    oe_wire.pool.FindServiceByName(f"{PACKAGE}.{name}").CopyToProto(service)
    return {
        method.name: {
            "request": method.input_type.removeprefix(f".{PACKAGE}."),
            "response": method.output_type.removeprefix(f".{PACKAGE}."),
            "server_streaming": method.server_streaming,
            "client_streaming": method.client_streaming,
        }
        for method in service.method
    }


@pytest.mark.parametrize("message", RELEASE["messages"])
def test_release_message(message: str) -> None:
    """A message of the release has exactly the recorded fields."""
    assert compiled_rows(message) == {expected_row(f) for f in RELEASE["messages"][message]}


@pytest.mark.parametrize("enum", RELEASE["enums"])
def test_release_enum(enum: str) -> None:
    """An enum of the release has exactly the recorded values."""
    assert compiled_enum(enum) == RELEASE["enums"][enum]


@pytest.mark.parametrize("service", RELEASE["services"])
def test_release_service(service: str) -> None:
    """A service of the release has exactly the recorded RPCs."""
    assert compiled_service(service) == RELEASE["services"][service]


def test_release_files_hold_nothing_else() -> None:
    """The files of the release define its messages and enums and no other."""
    files = [oe_wire.pool.FindFileByName(f"openengine/v1/{name}.proto") for name in RELEASE_FILES]
    assert {name for file in files for name in file.message_types_by_name} == set(
        RELEASE["messages"]
    )
    assert {name for file in files for name in file.enum_types_by_name} == set(RELEASE["enums"])


@pytest.mark.parametrize("message", RESTORED["messages"])
def test_restored_message(message: str) -> None:
    """A restored message has the recorded fields; what it adds is numbered from 100."""
    compiled = compiled_rows(message)
    recorded = {expected_row(f) for f in RESTORED["messages"][message]}
    assert recorded <= compiled
    assert all(number >= FIRST_OWN_NUMBER for _, number, *_ in compiled - recorded)


@pytest.mark.parametrize("enum", RESTORED["enums"])
def test_restored_enum(enum: str) -> None:
    """A restored enum has the recorded values; what it adds is numbered from 100."""
    compiled = compiled_enum(enum)
    recorded = RESTORED["enums"][enum]
    assert recorded.items() <= compiled.items()
    assert all(compiled[name] >= FIRST_OWN_NUMBER for name in compiled.keys() - recorded.keys())


def test_services_of_the_package() -> None:
    """The package holds the two services of the release, the sibling services and no other."""
    compiled = {
        service.name: set(service.methods_by_name)
        for name in FILE_NAMES
        for service in oe_wire.pool.FindFileByName(name).services_by_name.values()
        if service.full_name.startswith(f"{PACKAGE}.")
    }
    released = {name: set(methods) for name, methods in RELEASE["services"].items()}
    assert compiled == released | OWN_SERVICES


@pytest.mark.parametrize("method", ALIASES)
def test_alias(method: str) -> None:
    """An aliased RPC has the types and the streaming of the Control RPC of that name."""
    assert compiled_service(ALIASES[method])[method] == RELEASE["services"]["Control"][method]


def test_engine_info_starts_with_server_info() -> None:
    """EngineInfo repeats fields 1-12 of ServerInfo; its own begin at 100."""
    engine, server = compiled_rows("EngineInfo"), compiled_rows("ServerInfo")
    assert {row for row in engine if row[1] < FIRST_OWN_NUMBER} == server
    assert {row[1] for row in server} == set(range(1, 13))
    assert {row[1] for row in engine - server} == {100, 101, 102, 103}
