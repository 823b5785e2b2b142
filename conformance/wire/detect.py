"""The first step of a run: what kind of server answers, and what it says about itself."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from conformance.errors import UnreachableError, unknown_name
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.dialect import DIALECTS, DRAFT, RELEASED, dialect_of
from conformance.wire.live_call import UNPARSABLE
from conformance.wire.models import choose_model
from conformance.wire.patience import Patience, one_line
from conformance.wire.single_service import SINGLE_ENGINE_INFO
from conformance.wire.transcript import Transcript
from oe_wire import v1
from oe_wire.services import METHODS, Method

__all__ = ["DIALECTS", "DRAFT", "RELEASED", "answered", "detect", "dialect_of"]

CAPABILITIES = METHODS["openengine.v1.OpenEngineDiscovery/GetCapabilities"]
GENERATE = METHODS["openengine.v1.Inference/Generate"]
ENGINE_INFO = METHODS["openengine.v1.OpenEngineDiscovery/GetEngineInfo"]
SERVER_INFO = METHODS["openengine.v1.Control/GetServerInfo"]
_LOGIN = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})

M = TypeVar("M", bound=Message)


def detect(
    connection: Connection, *, timeout: float, model: str | None, dialect: str | None = None
) -> Declared:
    """Wait for the target, find its class, and ask what it declares.

    timeout: seconds for all of it together. model: the model to test, None for the first served
    one. dialect: one of DIALECTS instead of what `schema_release` says.

    Raises UnreachableError when there is no OpenEngine server or no answer in time, ConfigError
    for a model that is not served or an unknown dialect.
    """
    if dialect is not None and dialect not in DIALECTS:
        raise unknown_name("dialect", dialect, DIALECTS, source="--dialect")
    patience = Patience(connection, timeout)
    declared = _classify(patience)
    if connection.address_of(GENERATE) != connection.address_of(CAPABILITIES):
        patience.connect(GENERATE)  # everything above went to the control listener
    release = getattr(declared.engine, "schema_release", "")
    # The one service is older than the release: its values are those of the draft.
    spoken = DRAFT if declared.single_service else dialect_of(release)
    declared = dataclasses.replace(declared, dialect=dialect or spoken)
    if declared.single_service:
        single = dataclasses.replace(connection.target, single_service=True)
        with Connection(single, connection.routes) as own:
            return choose_model(Patience(own, timeout), declared, model)
    declared = choose_model(patience, declared, model)
    if declared.legacy:
        return declared
    answer = patience.ask(CAPABILITIES, v1.GetCapabilitiesRequest(model=declared.model_name))
    return dataclasses.replace(declared, capabilities=_message(answer, v1.Capabilities))


def _probe(patience: Patience, method: Method, request: Message) -> Transcript:
    """One probe of the detection table; a target that wants a login ends the detection."""
    answer = patience.ask(method, request)
    ending = answer.ending
    if ending.code in _LOGIN:
        raise UnreachableError(
            f"{method.full_name}: {ending.code.name} ({one_line(ending.details)}); expected "
            "fitting credentials (--metadata-env, --cert)"
        )
    return answer


def _classify(patience: Patience) -> Declared:
    scope = _probe(patience, CAPABILITIES, v1.GetCapabilitiesRequest())
    unimplemented = scope.ending.code is grpc.StatusCode.UNIMPLEMENTED
    if not unimplemented:
        # A broken answer is still discovery: taking the engine for a legacy one would excuse it.
        info = _probe(patience, ENGINE_INFO, v1.GetEngineInfoRequest())
        if answered(scope) or info.ending.ok:
            return Declared(
                TargetClass.PROFILE_AWARE,
                RELEASED,
                server_info=_server_info(patience),
                engine_info=_message(info, v1.EngineInfo),
                engine_scope=_message(scope, v1.Capabilities),
            )
        raise _not_openengine(patience, scope, info)
    server = _probe(patience, SERVER_INFO, v1.GetServerInfoRequest())
    if answered(server):
        return Declared(TargetClass.LEGACY, RELEASED, server_info=_message(server, v1.ServerInfo))
    single = _probe(patience, SINGLE_ENGINE_INFO, v1.GetEngineInfoRequest())
    if server.ending.code is grpc.StatusCode.UNIMPLEMENTED and answered(single):
        found = _message(single, v1.EngineInfo)
        return Declared(
            TargetClass.LEGACY_SINGLE,
            RELEASED,
            server_info=None if found is None else _as_server_info(found),
            engine_info=found,
        )
    raise _not_openengine(patience, scope, server, single)


def answered(transcript: Transcript) -> bool:
    """Whether the RPC is served: it ended OK, or with bytes that do not parse."""
    return transcript.ending.ok or transcript.ending.details.startswith(UNPARSABLE)


def _message(transcript: Transcript, kind: type[M]) -> M | None:
    """The answer of a unary call that ended OK; None for any other."""
    messages = transcript.messages
    if transcript.ending.ok and messages and isinstance(messages[0], kind):
        return messages[0]
    return None


def _server_info(patience: Patience) -> v1.ServerInfo | None:
    return _message(patience.ask(SERVER_INFO, v1.GetServerInfoRequest()), v1.ServerInfo)


def _as_server_info(info: v1.EngineInfo) -> v1.ServerInfo:
    """What a ServerInfo of the same fields says; their numbers are the same."""
    server = v1.ServerInfo.FromString(info.SerializeToString())
    server.DiscardUnknownFields()
    return server


def _not_openengine(patience: Patience, *answers: Transcript) -> UnreachableError:
    connection = patience.connection
    seen = ", ".join(
        f"{answer.method.removeprefix('openengine.v1.')} {answer.ending.code.name}"
        for answer in answers
    )
    text = one_line(answers[0].ending.details)
    details = f" ({text})" if text else ""
    return UnreachableError(
        f"{connection.target.address.removeprefix('dns:///')}: not an OpenEngine server: "
        f"{seen}{details}; expected one that serves openengine.v1"
    )
