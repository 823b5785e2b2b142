"""One live call as it is kept: names, numbers and words from closed lists."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

import jsonschema

from conformance.errors import HarnessError
from conformance.records.category import Category

SCHEMA = "call-record/v1"
# Times and counts beyond this are no measurement (microseconds: an hour).
MOST_MICROSECONDS = 3_600_000_000
MOST_TOKENS = 2**31


class Dispatch(StrEnum):
    """How far a request got."""

    NOT_SENT = "not_sent"  # no byte reached a connected socket: it may be sent again
    SENT_UNKNOWN = "sent_unknown"  # it may have arrived: it is never sent again
    COMPLETED = "completed"  # the answer is whole, its terminator and its usage included


class Completion(StrEnum):
    """What came of the call."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class Finish(StrEnum):
    """Why generation ended, in one vocabulary for all APIs."""

    STOP = "stop"
    LENGTH = "length"
    TOOL = "tool"
    FILTER = "filter"
    ABORT = "abort"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the provider reported them. None: it said nothing, which is not 0."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds since the call started, on the wire. None: not reached."""

    connect: int | None = None
    headers: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderTiming:
    """Microseconds that the provider reported about itself."""

    load: int | None = None
    prompt: int | None = None
    completion: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """A call that is meant to be made: all that is known before it.

    attempts: how often it may be sent, as long as each attempt is proven not to have been.
    """

    call_id: str
    key_id: str
    profile: str
    profile_digest: str
    route: str
    effect: str
    endpoint: str
    requested_model: str
    request: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class CallRecord:
    """An intent and its outcome. status: of HTTP. frames: messages of the response. terminator:
    whether the one that the profile names was seen.
    """

    intent: Intent
    attempt: int
    dispatch: Dispatch
    completion: Completion
    finish: Finish | None = None
    status: int | None = None
    error: Category | None = None
    response: str | None = None
    frames: int | None = None
    terminator: bool | None = None
    usage: Usage = Usage()
    timing: Timing = Timing()
    provider_timing: ProviderTiming | None = None


def record_json(record: CallRecord) -> dict[str, Any]:
    """The record as JSON. Raises HarnessError unless it is as its schema says."""
    intent = record.intent
    error = None if record.error is None else {"category": record.error, "status": record.status}
    timing = record.provider_timing
    value = {
        "schema": SCHEMA,
        **_intent(intent),
        "attempt": record.attempt,
        "dispatch": record.dispatch.value,
        "completion": {"class": record.completion.value, "finish": record.finish},
        "http_status": record.status,
        "error": error,
        "response_hmac": record.response,
        "frames": record.frames,
        "terminator_seen": record.terminator,
        "usage": asdict(record.usage),
        "timing_us": asdict(record.timing),
        "provider_timing_us": None if timing is None else asdict(timing),
    }
    return checked("record", value)


def intent_json(intent: Intent) -> dict[str, Any]:
    """The intent as JSON. Raises HarnessError unless it is as its schema says."""
    return checked("intent", {**_intent(intent), "attempts": intent.attempts})


def intent_from(value: dict[str, Any]) -> Intent:
    """The intent in a JSON object that its schema has accepted."""
    return Intent(
        call_id=value["call_id"],
        key_id=value["key_id"],
        profile=value["profile"]["id"],
        profile_digest=value["profile"]["digest"],
        route=value["route"],
        effect=value["effect"],
        endpoint=value["endpoint_binding"],
        requested_model=value["requested_model"],
        request=value["request_hmac"],
        attempts=value["attempts"],
    )


def _intent(intent: Intent) -> dict[str, Any]:
    return {
        "call_id": intent.call_id,
        "key_id": intent.key_id,
        "profile": {"id": intent.profile, "digest": intent.profile_digest},
        "route": intent.route,
        "effect": intent.effect,
        "endpoint_binding": intent.endpoint,
        "requested_model": intent.requested_model,
        "request_hmac": intent.request,
    }


def checked(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """`value` as plain JSON, if the schema of this kind accepts it.

    Raises HarnessError that names the place and shows nothing of the value.
    """
    plain: dict[str, Any] = json.loads(json.dumps(value))
    problem = problem_of(kind, plain)
    if problem:
        raise HarnessError(f"a call {kind} does not match its schema at {problem}")
    return plain


def problem_of(kind: str, value: Any) -> str:
    """Where a value breaks the schema of `kind` (record, intent, lease, outcome); empty if not."""
    error = next(iter(_validator(kind).iter_errors(value)), None)
    return "" if error is None else f"{error.json_path} ({error.validator})"


@cache
def schema() -> Any:
    """The JSON Schema of records and of the store's lines."""
    file = resources.files("conformance.records") / "schema" / "call-record.json"
    return json.loads(file.read_text(encoding="utf-8"))


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema() | {"$ref": f"#/$defs/{kind}"})
