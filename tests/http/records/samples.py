"""An intent and a record to begin with."""

from __future__ import annotations

from conformance.records.identity import IdentityKey
from conformance.records.record import CallRecord, Completion, Dispatch, Intent

KEY = IdentityKey("0123456789abcdef", b"k" * 32)


def intent(number: int = 1, attempts: int = 1) -> Intent:
    return Intent(
        call_id=f"{number:032x}",
        key_id=KEY.id,
        profile="fixture@1",
        profile_digest="a" * 64,
        route="chat",
        effect="inference",
        endpoint=KEY.request("GET", "/", b""),
        requested_model="scripted",
        request=KEY.request("POST", "/v1/chat/completions", b"{}"),
        attempts=attempts,
    )


def complete(of: Intent, attempt: int = 1) -> CallRecord:
    response = KEY.response(b"{}")
    return CallRecord(of, attempt, Dispatch.COMPLETED, Completion.COMPLETE, response=response)
