"""Messages, enums and enum values of `openengine.v1`; `v1.pyi` types them."""

from oe_wire.descriptors import namespace

globals().update(namespace("openengine.v1", __name__))
