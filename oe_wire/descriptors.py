"""The wire's descriptors in a pool of their own.

Protobuf's default pool refuses two different files of one name. A private pool lets this package
live in a process that already holds other bindings of `openengine.v1` or `grpc.health.v1`.
"""

from functools import cache
from importlib.resources import files

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

DESCRIPTOR_SET = "openengine.binpb"


def _read_descriptor_set() -> FileDescriptorSet:
    """The packaged set; every file comes after the files that it imports."""
    return FileDescriptorSet.FromString(files(__package__).joinpath(DESCRIPTOR_SET).read_bytes())


def _fill(descriptor_set: FileDescriptorSet) -> DescriptorPool:
    pool = DescriptorPool()
    for file in descriptor_set.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_FILES = _read_descriptor_set()
FILE_NAMES: tuple[str, ...] = tuple(file.name for file in _FILES.file)
pool: DescriptorPool = _fill(_FILES)


@cache
def message_class(full_name: str) -> type[Message]:
    """The class of a message, e.g. `openengine.v1.Usage`. KeyError when the wire has none."""
    try:
        descriptor = pool.FindMessageTypeByName(full_name)
    except KeyError:
        raise KeyError(f"the wire has no message {full_name!r}") from None
    return GetMessageClass(descriptor)


def namespace(package: str, module: str) -> dict[str, object]:
    """Top-level message classes, enum types and enum values of a protobuf package, by short name.

    The classes say that they live in `module`, so that messages pickle and print as its members.
    """
    names: dict[str, object] = {}
    for file_name in FILE_NAMES:
        file = pool.FindFileByName(file_name)
        if file.package != package:
            continue
        for name, message in file.message_types_by_name.items():
            cls = message_class(message.full_name)
            cls.__module__ = module
            names[name] = cls
        for name, enum in file.enum_types_by_name.items():
            names[name] = EnumTypeWrapper(enum)
            names.update({value.name: value.number for value in enum.values})
    return names
