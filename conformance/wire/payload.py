"""Takes what users wrote and models answered out of a recorded call, and leaves its structure.

Texts and bytes keep their length and lists their count, so that every rule that does not read
content judges the call as before; token ids become 0. What could quote content (status messages,
metadata, unknown fields) goes too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from conformance.wire.transcript import Event, Metadata, Transcript

# Field names of openengine.v1 whose values are, or quote, what a user wrote or a model answered.
PAYLOAD_FIELDS = frozenset(
    {
        "attributes",
        "attributes_struct",
        "cache_salt",
        "choices",
        "data",
        "data_uri",
        "ebnf_grammar",
        "extra",
        "ids",
        "instruction",
        "json_schema",
        "message",
        "prompt",
        "raw_bytes",
        "regex",
        "stop_text",
        "structural_tag",
        "text",
        "token",
        "token_id",
        "token_ids",
        "url",
        "uuid",
        "values",
    }
)
# Trailers that say how a call failed, in words of the protocol.
_PROTOCOL_TRAILERS = "openengine-error-"
_OPEN_STRUCTURE = "google.protobuf."  # Struct, Value and ListValue are content as a whole
_BLANK = "x"


def without_payload(transcript: Transcript) -> Transcript:
    """A copy of the call without content, marked as redacted."""
    request = None if transcript.request is None else _blanked(transcript.request)
    ending = transcript.ending
    trailers = tuple(
        (key, value) if key.startswith(_PROTOCOL_TRAILERS) else (key, _blank(value))
        for key, value in ending.trailers
    )
    return replace(
        transcript,
        request=request,
        request_bytes=b"" if request is None else request.SerializeToString(deterministic=True),
        metadata=_blanked_metadata(transcript.metadata),
        events=tuple(Event(event.seconds, _blanked(event.message)) for event in transcript.events),
        ending=replace(ending, details="", trailers=trailers),
        redacted=True,
    )


def _blanked_metadata(metadata: Metadata) -> Metadata:
    return tuple((key, _blank(value)) for key, value in metadata)


def _blanked(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    _blank_fields(copy)
    return copy


def _blank_fields(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _blank_messages(message, field, value)
        elif field.name in PAYLOAD_FIELDS and field.is_repeated:
            blank = [_blank(item) for item in value]
            message.ClearField(field.name)
            getattr(message, field.name).extend(blank)
        elif field.name in PAYLOAD_FIELDS:
            setattr(message, field.name, _blank(value))


def _blank_messages(message: Message, field: FieldDescriptor, value: Any) -> None:
    kind = cast(Descriptor, field.message_type)
    if kind.full_name.startswith(_OPEN_STRUCTURE) or kind.GetOptions().map_entry:
        message.ClearField(field.name)
        if not field.is_repeated:
            getattr(message, field.name).SetInParent()
        return
    for item in value if field.is_repeated else (value,):
        _blank_fields(item)


def _blank(value: Any) -> Any:
    if isinstance(value, str):
        return _BLANK * len(value)
    if isinstance(value, bytes):
        return bytes(len(value))
    return type(value)(0)
