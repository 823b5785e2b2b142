"""Laws about failures: how many forms one takes, what it says, and what it must not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grpc

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import errors, request_of, responses
from conformance.wire.declared import FALLBACK_REQUEST_BYTES, Declared
from conformance.wire.transcript import Origin, Transcript
from oe_wire import v1

EVERY_RPC: frozenset[str] = frozenset()
PACKAGE = "openengine.v1."
CODE_TRAILER = "openengine-error-code"
RETRYABLE_TRAILER = "openengine-error-retryable"
AUTH = "authorization"
# The requirement that an engine never fails because of what a client sent.
BLAMELESS = "OE-CORE-ERR-006"

# Which ErrorCode goes with which status of a rejection (mapping table of the core profile). A
# status that the table gives no code, or that it lacks, is not judged.
CODES_BY_STATUS: Mapping[grpc.StatusCode, frozenset[str]] = {
    grpc.StatusCode.INVALID_ARGUMENT: frozenset({"INVALID_ARGUMENT", "UNSUPPORTED_FEATURE"}),
    grpc.StatusCode.FAILED_PRECONDITION: frozenset({"ROLE_MISMATCH"}),
    grpc.StatusCode.NOT_FOUND: frozenset(
        {"MODEL_NOT_FOUND", "REQUEST_NOT_FOUND", "KV_SESSION_NOT_FOUND"}
    ),
    grpc.StatusCode.ALREADY_EXISTS: frozenset({"DUPLICATE_REQUEST"}),
    grpc.StatusCode.RESOURCE_EXHAUSTED: frozenset({"OVERLOADED"}),
    grpc.StatusCode.UNAVAILABLE: frozenset({"OVERLOADED"}),
    grpc.StatusCode.CANCELLED: frozenset({"CANCELLED"}),
    grpc.StatusCode.INTERNAL: frozenset({"INTERNAL", "KV_TRANSFER_FAILED"}),
}
# Proxies and the gRPC libraries answer with these too, and know no trailers of ours.
ALSO_OF_THE_TRANSPORT = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
NEVER_RETRYABLE = frozenset(
    {"INVALID_ARGUMENT", "UNSUPPORTED_FEATURE", "ROLE_MISMATCH", "MODEL_NOT_FOUND"}
)

# Shorter texts appear in messages by chance.
MIN_PROMPT_MARKER = 12
MIN_METADATA_MARKER = 8
MIN_DISTINCT_CHARACTERS = 4


def ours(transcript: Transcript) -> bool:
    """Whether the RPC belongs to openengine.v1 (and not, say, to grpc.health.v1)."""
    return transcript.method.startswith(PACKAGE)


def code_name(code: int) -> str:
    """An ErrorCode without its prefix, or the number of one that this revision does not know."""
    value = v1.ErrorCode.DESCRIPTOR.values_by_number.get(code)
    return str(code) if value is None else value.name.removeprefix("ERROR_CODE_")


def trailer(transcript: Transcript, key: str) -> str | None:
    """The first value of a trailer as text, None when it is absent."""
    for name, value in transcript.ending.trailers:
        if name.lower() == key:
            return value if isinstance(value, str) else value.decode("latin-1")
    return None


def rejection_code(transcript: Transcript) -> str | None:
    """The ErrorCode name in the trailers, with or without its enum prefix, as the short name."""
    value = trailer(transcript, CODE_TRAILER)
    return None if value is None else value.removeprefix("ERROR_CODE_")


@law("OE-CORE-ERR-001")
def one_representation(transcript: Transcript, _: Declared) -> Ruling:
    """A call fails by an event or by its status, not by both."""
    found = errors(transcript)
    failed_status = transcript.ending.origin is Origin.REMOTE and not transcript.ending.ok
    if not found and not failed_status:
        return None
    if found and failed_status:
        code = transcript.ending.code.name
        return Finding(
            "an EngineError or a non-OK status", f"an EngineError and status {code}", found[0][0]
        )
    return True


@law("OE-CORE-ERR-002")
def error_says_what(transcript: Transcript, _: Declared) -> Ruling:
    """A reported failure has a code and words."""
    found = errors(transcript)
    for event, error in found:
        if error.code == v1.ERROR_CODE_UNSPECIFIED:
            return Finding("an EngineError with a code", "ERROR_CODE_UNSPECIFIED", event)
        if not error.message:
            return Finding("an EngineError with a message", "an empty message", event)
    return True if found else None


def contradiction(transcript: Transcript) -> Finding | None:
    """The code in a rejection's trailers if it does not belong to the rejection's status.

    Graver than an absent trailer: clients act upon it.
    """
    name = rejection_code(transcript)
    status = transcript.ending.code
    if name is None or not transcript.rejected:
        return None
    names = v1.ErrorCode.DESCRIPTOR.values_by_name
    if f"ERROR_CODE_{name}" not in names or name == "UNSPECIFIED":
        return Finding(f"an ErrorCode name in {CODE_TRAILER}", "a value that is none")
    allowed = CODES_BY_STATUS.get(status)
    if allowed is not None and name not in allowed:
        expected = f"{CODE_TRAILER} {' or '.join(sorted(allowed))} for status {status.name}"
        return Finding(expected, name)
    return None


def _refused_for_size(transcript: Transcript, declared: Declared) -> bool:
    """Whether the gRPC library may have refused the message before the engine saw it."""
    capabilities = declared.capabilities
    core = None if capabilities is None else capabilities.core
    limit = FALLBACK_REQUEST_BYTES
    if core is not None and core.HasField("max_request_bytes"):
        limit = min(limit, core.max_request_bytes)
    return len(transcript.request_bytes) > limit


@law("OE-CORE-ERR-004", methods=EVERY_RPC)
def rejection_names_code(transcript: Transcript, declared: Declared) -> Ruling:
    """A rejection tells machines its ErrorCode in the trailers, one that fits its status."""
    # Bytes that do not parse never reach the engine's code in most gRPC libraries.
    if not ours(transcript) or not transcript.rejected or transcript.request is None:
        return None
    if (finding := contradiction(transcript)) is not None:
        return finding
    status = transcript.ending.code
    if status not in CODES_BY_STATUS:
        return None
    if rejection_code(transcript) is not None:
        return True
    if status in ALSO_OF_THE_TRANSPORT or _refused_for_size(transcript, declared):
        return None
    return Finding(f"trailer {CODE_TRAILER} on status {status.name}", "no such trailer")


@law("OE-CORE-ERR-005")
def no_vain_retry(transcript: Transcript, _: Declared) -> Ruling:
    """A failure that the same request meets again is not called retryable."""
    judged = False
    for event, error in errors(transcript):
        name = code_name(error.code)
        if name in NEVER_RETRYABLE:
            judged = True
            if error.retryable:
                return Finding(f"retryable false for {name}", "true", event)
    name = (rejection_code(transcript) if transcript.rejected else None) or ""
    retryable = trailer(transcript, RETRYABLE_TRAILER)
    if name in NEVER_RETRYABLE and retryable is not None:
        judged = True
        if retryable.lower() == "true":
            return Finding(f"{RETRYABLE_TRAILER} false for {name}", "true")
    return True if judged else None


@law(BLAMELESS, methods=EVERY_RPC)
def no_blame_on_input(transcript: Transcript, _: Declared) -> Ruling:
    """No request, however odd, makes the engine answer INTERNAL or UNKNOWN.

    Not held against an engine while a fault is armed in it on purpose.
    """
    if not ours(transcript) or transcript.request is None or not transcript.undisturbed:
        return None
    status = transcript.ending.code
    blamed = status in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
    if transcript.rejected and blamed:
        return Finding("a status that names the client's fault, or OK", status.name)
    return None if blamed else True


def _messages(transcript: Transcript) -> Iterator[tuple[int | None, str]]:
    """Everything an engine says in words, with the event that says it (None: the status)."""
    for event, response in responses(transcript):
        if response.HasField("error"):
            yield event, response.error.message
        elif response.HasField("finished"):
            yield event, response.finished.message
    if transcript.ending.origin is Origin.REMOTE:
        yield None, transcript.ending.details


def _secret(text: str, shortest: int) -> bool:
    """Whether `text` in a message can only be an echo: long, varied, and not a mere number."""
    varied = len(set(text)) >= MIN_DISTINCT_CHARACTERS
    return len(text) >= shortest and varied and any(c.isalpha() for c in text)


def _public(transcript: Transcript) -> str:
    """What messages may repeat: the names that a request gives itself and its model."""
    request = request_of(transcript)
    return "" if request is None else f"{request.request_id}\n{request.model}"


def _prompt_secret(transcript: Transcript) -> str | None:
    request = request_of(transcript)
    prompt = "" if request is None else request.prompt.strip()
    hidden = _secret(prompt, MIN_PROMPT_MARKER) and prompt not in _public(transcript)
    return prompt if hidden else None


def _metadata_secrets(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Values sent as metadata that no message may hold, with their keys."""
    public = _public(transcript)
    for name, value in transcript.metadata:
        key = name.lower()
        if not isinstance(value, str) or not (key.startswith("openengine-") or key == AUTH):
            continue
        # The credential alone is as bad as the credential after its scheme.
        for part in (value, value.rpartition(" ")[2]) if key == AUTH else (value,):
            if _secret(part, MIN_METADATA_MARKER) and part not in public:
                yield key, part


@law("OE-CORE-ERR-007", methods=EVERY_RPC, reads_content=True)
def keeps_secrets(transcript: Transcript, _: Declared) -> Ruling:
    """What a caller sent as prompt or metadata does not come back in an error's words."""
    said = [(event, text) for event, text in _messages(transcript) if text]
    prompt = _prompt_secret(transcript)
    values = list(_metadata_secrets(transcript))
    if not ours(transcript) or not said or (prompt is None and not values):
        return None
    for event, text in said:
        where = "status message" if event is None else "message"
        if prompt is not None and prompt in text:
            return Finding("no prompt text in messages", f"the {where} holds the prompt", event)
        key = next((key for key, value in values if value in text), None)
        if key is not None:
            expected = "no metadata value in messages"
            return Finding(expected, f"the {where} holds the value of {key}", event)
    return True


LAWS = (
    one_representation,
    error_says_what,
    rejection_names_code,
    no_vain_retry,
    no_blame_on_input,
    keeps_secrets,
)
