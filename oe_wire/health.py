"""Messages of `grpc.health.v1`; `health.pyi` types them."""

from oe_wire.descriptors import namespace

globals().update(namespace("grpc.health.v1", __name__))
