"""`google.protobuf.Struct` and its parts as the private pool has them.

A Struct of `google.protobuf.struct_pb2` belongs to the default pool and is refused by our fields.
"""

from oe_wire.descriptors import namespace

globals().update(namespace("google.protobuf", __name__))
