"""One bounded call under a complete contract, and the one thing that is said about it."""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import ConfigError
from conformance.http.dialer import Dialer
from conformance.http.limits import Limits
from conformance.http.pinning import PinnedDialer
from conformance.http.policy import secrets_from
from conformance.http.target import HttpTarget
from conformance.records.ask import PROMPT, request_for, wants_usage
from conformance.records.call import Made, Planned, make_call
from conformance.records.evidence import Field, configured, observed
from conformance.records.identity import IdentityKey, key_from, run_key
from conformance.records.leak import SHORTEST_PRIVATE, checked_text, spoken
from conformance.records.record import Completion, Intent, record_json
from conformance.records.smoke_contract import SmokeContract
from conformance.records.store import CallStore

SCHEMA = "smoke/v1"
LIMITS = Limits(
    request_bytes=64 * 1024,
    response_bytes=1024 * 1024,
    header_bytes=16 * 1024,
    headers=64,
    chunks=4096,
    connect_seconds=3.0,
    headers_seconds=5.0,
    idle_seconds=5.0,
    total_seconds=10.0,
)


@dataclass(frozen=True, slots=True)
class Smoke:
    """What came of a smoke call. text: one line of JSON, which may be shown to anybody."""

    text: str
    complete: bool


def smoke(
    contract: SmokeContract,
    environment: Mapping[str, str],
    store: Path,
    *,
    dialer: Dialer | None = None,
    tls: ssl.SSLContext | None = None,
) -> Smoke:
    """Make the call. store: directory of the write-ahead store. dialer, tls: instead of the
    policy's own and of the system's trust.

    Raises ConfigError before any contact for a credential or key that cannot be read, and
    HarnessError when what would be said holds a text that it must not.
    """
    references = () if contract.secret is None else (contract.secret,)
    secret = secrets_from(references, environment)
    values = [value for _, value in secret()]
    key = run_key() if contract.key is None else key_from(environment, contract.key)
    target = HttpTarget(
        contract.origin,
        PinnedDialer(contract.policy) if dialer is None else dialer,
        secrets=secret,
        tls=tls,
    )
    planned = plan(contract, key)
    with CallStore(store) as calls:
        calls.intend(planned.intent)
        made = make_call(calls, key, target, planned, LIMITS)
    text = json.dumps(_said(contract, made), sort_keys=True)
    private = [PROMPT, contract.origin.text, contract.origin.authority, *values]
    private += [each.variable for each in references]
    private += [contract.key, environment[contract.key]] if contract.key else []
    checked_text(text, private, SHORTEST_PRIVATE)
    checked_text(text, _outputs(contract, made))
    return Smoke(text, made.record.completion is Completion.COMPLETE)


def plan(contract: SmokeContract, key: IdentityKey) -> Planned:
    """The call that a contract describes. Raises ConfigError when it is larger than allowed."""
    route, stream, profile = contract.route, contract.stream, contract.profile
    request = request_for(route, contract.body, contract.model_id, stream=stream)
    if len(request.body) > LIMITS.request_bytes:
        raise ConfigError("the request is too large", expected=f"{LIMITS.request_bytes} bytes")
    intent = Intent(
        call_id=secrets.token_hex(16),
        key_id=key.id,
        profile=profile.id,
        profile_digest=profile.digest,
        route=route.name,
        effect=route.effect.value,
        endpoint=key.endpoint(contract.origin, profile.id, profile.digest),
        requested_model=contract.model_id,
        request=key.request(request.method, request.path, request.body),
    )
    return Planned(intent, request, route, stream, wants_usage(route, stream=stream))


def _said(contract: SmokeContract, made: Made) -> dict[str, Any]:
    identity = configured(
        {
            "runtime": contract.profile.name,
            "runtime_build": contract.profile.build,
            "model_id": contract.model_id,
            "model_revision": contract.model_revision,
            "backend_name": contract.backend_name,
            "backend_build": contract.backend_build,
            "configuration_digest": contract.configuration_digest,
        }
    )
    model = made.reading.model if made.reading is not None else None
    identity = observed(identity, {} if model is None else {"model_id": model})
    return {
        "schema": SCHEMA,
        "instance": {name: _field(field) for name, field in identity.items()},
        "stream": contract.stream,
        "record": record_json(made.record),
    }


def _field(field: Field) -> dict[str, Any]:
    return {"value": field.value, "source": field.source, "contradicted": field.contradicted}


def _outputs(contract: SmokeContract, made: Made) -> list[str]:
    """What the server said, except where it only repeats what the operator stated."""
    if made.exchange is None or made.reading is None:
        return []
    said = spoken(frame.data for frame in made.reading.frames)
    stated = " ".join((contract.model_id, contract.model_revision, contract.backend_name))
    return [text for text in said if text.strip() not in stated]
