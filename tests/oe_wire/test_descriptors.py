"""The private pool and the classes built from it."""

import pickle
import subprocess
import sys
import textwrap

import pytest

import oe_wire
from oe_wire import health, v1
from oe_wire.descriptors import FILE_NAMES
from oe_wire.struct import Struct

FOREIGN_FIRST = """
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

default = descriptor_pool.Default()

def register(file_name, package, message_name):
    file = descriptor_pb2.FileDescriptorProto(name=file_name, package=package, syntax="proto3")
    message = file.message_type.add(name=message_name)
    message.field.add(name="foreign", number=9, type=9, label=1, json_name="foreign")
    default.AddSerializedFile(file.SerializeToString())

register("openengine/v1/kv.proto", "openengine.v1", "KvSessionRef")
register("grpc/health/v1/health.proto", "grpc.health.v1", "HealthCheckRequest")

def held():
    found = {}
    for name in names:
        try:
            found[name] = default.FindFileByName(name).serialized_pb
        except KeyError:
            pass
    return found

names = NAMES
before = held()
assert set(before) >= {"openengine/v1/kv.proto", "grpc/health/v1/health.proto"}, sorted(before)

from oe_wire import health, services, v1

request = v1.GenerateRequest(
    request_id="r", kv=v1.KvOptions(session=v1.KvSessionRef(session_id="s", dp_rank=3)),
    extra={"deep": {"list": [1, None, "x"]}},
)
assert v1.GenerateRequest.FromString(request.SerializeToString()) == request
check = health.HealthCheckRequest(service="openengine.v1.Inference")
assert health.HealthCheckRequest.FromString(check.SerializeToString()).service == check.service
services.handlers("grpc.health.v1.Health", object())

assert held() == before, sorted(held())
foreign = default.FindMessageTypeByName("openengine.v1.KvSessionRef")
assert [field.name for field in foreign.fields] == ["foreign"]
assert message_factory.GetMessageClass(foreign)(foreign="still works").foreign == "still works"
print("separate")
"""


def test_other_bindings_in_the_default_pool() -> None:
    """With different files of our names in the default pool, ours work and theirs stay as is."""
    script = textwrap.dedent(FOREIGN_FIRST).replace("NAMES", repr(FILE_NAMES))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "separate\n", "")


def test_every_message_has_a_class() -> None:
    """Each top-level message and enum value of the package is an attribute of oe_wire.v1."""
    files = [oe_wire.pool.FindFileByName(name) for name in FILE_NAMES if "openengine" in name]
    assert len(files) > 15
    for file in files:
        for name, message in file.message_types_by_name.items():
            assert getattr(v1, name).DESCRIPTOR is message
            assert oe_wire.message_class(message.full_name) is getattr(v1, name)
        for name, enum in file.enum_types_by_name.items():
            assert getattr(v1, name).keys() == list(enum.values_by_name)
            for value in enum.values:
                assert getattr(v1, value.name) == value.number


def test_enum_wrapper() -> None:
    """Enum types translate between names and numbers; nested ones hang on their message."""
    assert v1.FinishReason.Name(v1.FINISH_REASON_STOP) == "FINISH_REASON_STOP"
    assert v1.FinishReason.Value("FINISH_REASON_LENGTH") == 2
    assert health.HealthCheckResponse.ServingStatus.Name(3) == "SERVICE_UNKNOWN"
    assert health.HealthCheckResponse.NOT_SERVING == 2


def test_unknown_message_class() -> None:
    """Asking for a message that the wire lacks names it."""
    with pytest.raises(KeyError, match=r"no message 'openengine\.v1\.Nothing'"):
        oe_wire.message_class("openengine.v1.Nothing")


def test_struct_keeps_json_types() -> None:
    """Numbers, booleans, null, lists and nesting survive a Struct's round trip."""
    content = {"n": 1.5, "b": True, "s": "x", "none": None, "l": [1.0, [False], {"k": "v"}]}
    request = v1.GenerateRequest(extra=content)
    parsed = v1.GenerateRequest.FromString(request.SerializeToString()).extra
    assert isinstance(parsed, Struct)
    assert parsed == Struct(fields=request.extra.fields)
    assert (parsed["n"], parsed["b"], parsed["s"], parsed["none"]) == (1.5, True, "x", None)
    assert parsed.fields["b"].WhichOneof("kind") == "bool_value"
    assert [value.WhichOneof("kind") for value in parsed.fields["l"].list_value.values] == [
        "number_value",
        "list_value",
        "struct_value",
    ]


def test_unknown_fields_survive() -> None:
    """A field that an older message lacks is kept and written back byte for byte."""
    engine = v1.EngineInfo(engine_name="e", configuration_epoch=4, capability_revision=7)
    as_server = v1.ServerInfo.FromString(engine.SerializeToString())
    assert as_server.engine_name == "e"
    assert v1.EngineInfo.FromString(as_server.SerializeToString()) == engine


def test_optional_presence() -> None:
    """A present zero differs from an absent field, also on the wire."""
    absent = v1.SamplingParams.FromString(v1.SamplingParams().SerializeToString())
    zero = v1.SamplingParams.FromString(v1.SamplingParams(temperature=0.0).SerializeToString())
    assert not absent.HasField("temperature")
    assert zero.HasField("temperature")
    assert absent != zero


def test_fields_without_presence_refuse_hasfield() -> None:
    """A plain proto3 scalar has no presence to ask for."""
    with pytest.raises(ValueError, match="total_tokens"):
        v1.Usage().HasField("total_tokens")  # type: ignore[arg-type]


def test_messages_pickle() -> None:
    """Messages travel between worker processes."""
    request = v1.GenerateRequest(request_id="r", token_ids=v1.TokenIds(ids=[1, 2]))
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301
