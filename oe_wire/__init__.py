"""The openengine.v1 wire for Python, read from a descriptor set into a private pool."""

from oe_wire.descriptors import message_class, pool

__all__ = ["message_class", "pool"]
