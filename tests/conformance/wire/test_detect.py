from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest
import trustme

from conformance.errors import ConfigError, UnreachableError
from conformance.wire.declared import TargetClass
from conformance.wire.detect import DRAFT, RELEASED, detect
from conformance.wire.target import Target
from conformance.wire.tls import Tls
from oe_wire import v1
from tests.conformance.wire.servers import Connect, Serve

LONG = 20.0
SINGLE = "/openengine.v1.OpenEngine/GetEngineInfo"

Services = dict[str, dict[str, Any]]


def model_info(request: v1.GetModelInfoRequest, context: grpc.ServicerContext) -> v1.ModelInfo:
    """Knows `big` (alias `large`) and `small`; empty means `big`."""
    if request.model in {"", "big", "large"}:
        return v1.ModelInfo(
            model_id="org/big", served_model_name="big", served_model_aliases=["large"]
        )
    if request.model == "small":
        return v1.ModelInfo(model_id="org/small", served_model_name="small")
    context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
    raise AssertionError


def failing(code: grpc.StatusCode, details: str = "because") -> Any:
    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(code, details)

    return answer


def profile_aware() -> Services:
    """A server with discovery and control."""
    names = ["big", "small"]
    return {
        "OpenEngineDiscovery": {
            "GetCapabilities": lambda request, context: v1.Capabilities(
                model=request.model,
                profiles=[v1.ServiceProfile(name="core", major=1)],
            ),
            "GetEngineInfo": lambda request, context: v1.EngineInfo(
                engine_name="aware", supported_models=names, schema_release="v0.1.0"
            ),
            "GetModelInfo": model_info,
        },
        "Control": {
            "GetServerInfo": lambda request, context: v1.ServerInfo(engine_name="aware"),
            "GetModelInfo": model_info,
        },
    }


def legacy(release: str = "") -> Services:
    """A server with control alone."""
    return {
        "Control": {
            "GetServerInfo": lambda request, context: v1.ServerInfo(
                engine_name="old", supported_models=["big", "small"], schema_release=release
            ),
            "GetModelInfo": model_info,
        }
    }


def test_profile_aware(serve: Serve, connect: Connect) -> None:
    """Discovery that answers makes a profile-aware target with everything it says."""
    declared = detect(connect(serve(profile_aware())), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.PROFILE_AWARE
    assert declared.dialect == RELEASED
    assert declared.engine_info is not None
    assert declared.engine_info.engine_name == "aware"
    assert declared.server_info == v1.ServerInfo(engine_name="aware")
    assert declared.profiles == {"core"}
    assert declared.engine_scope is not None
    assert declared.engine_scope.model == ""
    assert declared.capabilities is not None
    assert declared.capabilities.model == "big"
    assert declared.model_name == "big"
    assert declared.model is not None
    assert declared.model.model_id == "org/big"


def test_profile_aware_without_core(serve: Serve, connect: Connect) -> None:
    """Capabilities without profiles are a failing profile-aware target, not a legacy one."""
    services = profile_aware()
    services["OpenEngineDiscovery"]["GetCapabilities"] = lambda r, c: v1.Capabilities()
    declared = detect(connect(serve(services)), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.PROFILE_AWARE
    assert declared.profiles == frozenset()


def test_capabilities_that_do_not_parse(serve: Serve, connect: Connect) -> None:
    """Garbage from GetCapabilities is discovery gone wrong, never taken as legacy."""
    path = "/openengine.v1.OpenEngineDiscovery/GetCapabilities"
    address = serve(legacy(), paths={path: lambda request, context: iter([b"\x0a\xff"])})
    declared = detect(connect(address), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.PROFILE_AWARE
    assert declared.engine_scope is None


def test_failing_capabilities_are_not_legacy(serve: Serve, connect: Connect) -> None:
    """INTERNAL from GetCapabilities beside a served GetEngineInfo stays profile-aware."""
    services = profile_aware()
    services["OpenEngineDiscovery"]["GetCapabilities"] = failing(grpc.StatusCode.INTERNAL)
    declared = detect(connect(serve(services)), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.PROFILE_AWARE
    assert declared.engine_scope is None
    assert declared.capabilities is None


def test_legacy(serve: Serve, connect: Connect) -> None:
    """Control alone is a legacy target with its model."""
    declared = detect(connect(serve(legacy())), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.LEGACY
    assert declared.engine_info is None
    assert declared.engine_scope is None
    assert declared.capabilities is None
    assert declared.server_info is not None
    assert declared.model_name == "big"
    assert declared.model is not None


def test_legacy_single(serve: Serve, connect: Connect) -> None:
    """The one service of the first drafts is recognised by its raw path."""
    data = v1.EngineInfo(engine_name="first", supported_models=["m"]).SerializeToString()
    address = serve(paths={SINGLE: lambda request, context: iter([data])})
    declared = detect(connect(address), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.LEGACY_SINGLE
    assert declared.engine_info is not None
    assert declared.engine_info.engine_name == "first"
    assert declared.model_name == "m"
    assert not declared.generates


@pytest.mark.parametrize(
    ("release", "override", "dialect"),
    [
        ("v0.1.0", None, RELEASED),
        ("", None, RELEASED),
        ("main-4def7c5", None, DRAFT),
        ("main-4def7c5", RELEASED, RELEASED),
        ("v0.1.0", DRAFT, DRAFT),
    ],
)
def test_dialect(
    serve: Serve, connect: Connect, release: str, override: str | None, dialect: str
) -> None:
    """The dialect is what schema_release names, unless it is given."""
    connection = connect(serve(legacy(release)))
    declared = detect(connection, timeout=LONG, model=None, dialect=override)
    assert declared.dialect == dialect


def test_unknown_dialect(connect: Connect, refused: str) -> None:
    """An unknown dialect is refused before any call."""
    with pytest.raises(ConfigError, match="--dialect: unknown dialect 'v9'"):
        detect(connect(refused), timeout=LONG, model=None, dialect="v9")


@pytest.mark.parametrize("services", [profile_aware(), legacy()], ids=["aware", "legacy"])
@pytest.mark.parametrize(("model", "found"), [("small", "org/small"), ("large", "org/big")])
def test_model_by_name_or_alias(
    serve: Serve, connect: Connect, services: Services, model: str, found: str
) -> None:
    """The model under test may be any supported name or alias."""
    declared = detect(connect(serve(services)), timeout=LONG, model=model)
    assert declared.model_name == model
    assert declared.model is not None
    assert declared.model.model_id == found


def test_unknown_model(serve: Serve, connect: Connect) -> None:
    """A model that is not served is an error that lists the served ones."""
    with pytest.raises(ConfigError, match=r"--model: model 'huge' .*expected one of big, small"):
        detect(connect(serve(legacy())), timeout=LONG, model="huge")


def test_engine_that_answers_to_every_model_name(serve: Serve, connect: Connect) -> None:
    """An answer about another model does not make the name a served one."""
    services = legacy()
    services["Control"]["GetModelInfo"] = lambda r, c: v1.ModelInfo(served_model_name="big")
    with pytest.raises(ConfigError, match="'huge' is not served"):
        detect(connect(serve(services)), timeout=LONG, model="huge")


def test_no_supported_models(serve: Serve, connect: Connect) -> None:
    """Without a list the engine's own default model is tested."""
    services = legacy()
    services["Control"]["GetServerInfo"] = lambda r, c: v1.ServerInfo()
    declared = detect(connect(serve(services)), timeout=LONG, model=None)
    assert declared.model_name == "big"


def test_unavailable_is_asked_again(serve: Serve, connect: Connect) -> None:
    """An engine that is still starting is waited for and then seen as what it is."""
    services = profile_aware()
    ready = services["OpenEngineDiscovery"]["GetCapabilities"]
    calls: list[str] = []

    def starting(request: v1.GetCapabilitiesRequest, context: grpc.ServicerContext) -> Any:
        calls.append(request.model)
        if len(calls) < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "loading")
        return ready(request, context)

    services["OpenEngineDiscovery"]["GetCapabilities"] = starting
    declared = detect(connect(serve(services)), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.PROFILE_AWARE
    assert calls == ["", "", "", "big"]


def test_server_that_comes_up_later(serve: Serve, connect: Connect, tmp_path: Any) -> None:
    """The listener itself may appear during the wait."""
    address = f"unix:{tmp_path}/engine.sock"
    connection = connect(address)
    found: list[TargetClass] = []
    thread = threading.Thread(
        target=lambda: found.append(detect(connection, timeout=LONG, model=None).target_class)
    )
    thread.start()
    serve(legacy(), listen=address)
    thread.join(LONG)
    assert found == [TargetClass.LEGACY]


def test_unavailable_to_the_end_is_not_legacy(serve: Serve, connect: Connect) -> None:
    """UNAVAILABLE until the limit is an unreachable target, although Control would answer."""
    services = legacy()
    services["OpenEngineDiscovery"] = {
        "GetCapabilities": failing(grpc.StatusCode.UNAVAILABLE, "loading")
    }
    with pytest.raises(UnreachableError, match=r"UNAVAILABLE \(loading\); waited 0.3 s"):
        detect(connect(serve(services)), timeout=0.3, model=None)


def test_last_try_that_hangs_keeps_the_answer(serve: Serve, connect: Connect) -> None:
    """An engine that said UNAVAILABLE and then says nothing is reported with what it said."""
    over = threading.Event()
    calls: list[None] = []

    def loading(request: Any, context: grpc.ServicerContext) -> v1.Capabilities:
        calls.append(None)
        if len(calls) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "loading")
        over.wait(LONG)
        return v1.Capabilities()

    address = serve({"OpenEngineDiscovery": {"GetCapabilities": loading}})
    with pytest.raises(UnreachableError, match=r"answers UNAVAILABLE \(loading\); waited 0.5 s"):
        detect(connect(address), timeout=0.5, model=None)
    over.set()


def test_grpc_server_without_openengine(serve: Serve, connect: Connect) -> None:
    """A gRPC server with other services is named as no OpenEngine server."""
    with pytest.raises(UnreachableError) as caught:
        detect(connect(serve({})), timeout=LONG, model=None)
    text = str(caught.value)
    assert "not an OpenEngine server" in text
    assert "Control/GetServerInfo UNIMPLEMENTED" in text
    assert "\n" not in text


def test_other_status_is_not_openengine(serve: Serve, connect: Connect) -> None:
    """Neither discovery nor control in working order: nothing to judge."""
    services = {"OpenEngineDiscovery": {"GetCapabilities": failing(grpc.StatusCode.INTERNAL)}}
    with pytest.raises(UnreachableError, match=r"not an OpenEngine .*GetCapabilities INTERNAL"):
        detect(connect(serve(services)), timeout=LONG, model=None)


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED]
)
def test_missing_credentials(serve: Serve, connect: Connect, code: grpc.StatusCode) -> None:
    """A target that wants credentials is told apart and the option is named."""
    services = {"OpenEngineDiscovery": {"GetCapabilities": failing(code)}}
    with pytest.raises(UnreachableError, match=rf"{code.name} .*--metadata-env"):
        detect(connect(serve(services)), timeout=LONG, model=None)


def trusting(authority: trustme.CA, name: str = "localhost") -> dict[str, Any]:
    return {"tls": Tls(ca=authority.cert_pem.bytes()), "authority": name}


@pytest.mark.parametrize(
    ("listener", "says"),
    [
        ("refused", "connection refused"),
        ("silent", "accepts the connection and says nothing"),
        ("closing", "closes the connection at once"),
        ("http_server", "an HTTP/1 server answers; expected a gRPC server"),
    ],
)
def test_no_grpc_server(
    listener: str, says: str, connect: Connect, request: pytest.FixtureRequest
) -> None:
    """Each kind of wrong listener has its own line, with the address, within the limit."""
    address = request.getfixturevalue(listener)
    with pytest.raises(UnreachableError) as caught:
        detect(connect(address), timeout=0.5, model=None)
    assert says in str(caught.value)
    assert str(caught.value).startswith(address.removeprefix("dns:///") + ": ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("listener", "says"),
    [
        ("refused", "connection refused"),
        ("silent", "says nothing"),
        ("closing", "closes the connection"),
        ("http_server", "does not speak TLS; expected no --tls"),
    ],
)
def test_no_tls_server(
    listener: str,
    says: str,
    connect: Connect,
    authority: trustme.CA,
    request: pytest.FixtureRequest,
) -> None:
    """The same listeners reached with TLS."""
    target = Target(request.getfixturevalue(listener), **trusting(authority))
    with pytest.raises(UnreachableError, match=says):
        detect(connect(target), timeout=0.5, model=None)


def test_plain_client_at_a_tls_server(
    serve: Serve, connect: Connect, server_tls: grpc.ServerCredentials
) -> None:
    """Forgotten --tls is named at once."""
    with pytest.raises(UnreachableError, match="speaks TLS; expected --tls"):
        detect(connect(serve(legacy(), tls=server_tls)), timeout=LONG, model=None)


def test_tls_client_at_a_plain_server(
    serve: Serve, connect: Connect, authority: trustme.CA
) -> None:
    """Superfluous --tls is named at once."""
    target = Target(serve(legacy()), **trusting(authority))
    with pytest.raises(UnreachableError, match="does not speak TLS; expected no --tls"):
        detect(connect(target), timeout=LONG, model=None)


def test_certificate_of_an_unknown_authority(
    serve: Serve, connect: Connect, server_tls: grpc.ServerCredentials
) -> None:
    """A certificate that the given CA did not sign is named at once."""
    target = Target(serve(legacy(), tls=server_tls), **trusting(trustme.CA()))
    with pytest.raises(UnreachableError, match=r"certificate is rejected: .*--ca FILE"):
        detect(connect(target), timeout=LONG, model=None)


def test_certificate_of_another_name(
    serve: Serve, connect: Connect, authority: trustme.CA, server_tls: grpc.ServerCredentials
) -> None:
    """A certificate for another host is named at once, with the option that helps."""
    target = Target(serve(legacy(), tls=server_tls), **trusting(authority, "other.example"))
    with pytest.raises(UnreachableError, match=r"certificate is rejected: .*--authority NAME"):
        detect(connect(target), timeout=LONG, model=None)


def test_missing_client_certificate(
    serve: Serve, connect: Connect, authority: trustme.CA, mutual_tls: grpc.ServerCredentials
) -> None:
    """A server that demands a client certificate is told apart."""
    target = Target(serve(legacy(), tls=mutual_tls), **trusting(authority))
    with pytest.raises(UnreachableError, match=r"wants a client certificate \(--cert"):
        detect(connect(target), timeout=0.5, model=None)


def test_server_that_hangs_in_the_call(serve: Serve, connect: Connect) -> None:
    """A gRPC server whose RPC never ends is told apart from a silent listener."""
    over = threading.Event()

    def hang(request: Any, context: grpc.ServicerContext) -> v1.Capabilities:
        over.wait(LONG)
        return v1.Capabilities()

    address = serve({"OpenEngineDiscovery": {"GetCapabilities": hang}})
    with pytest.raises(UnreachableError, match="HTTP/2 server answers the connection but not"):
        detect(connect(address), timeout=0.5, model=None)
    over.set()


def test_control_listener_alone_is_not_enough(serve: Serve, connect: Connect, refused: str) -> None:
    """A data plane that is down is found although discovery answers elsewhere."""
    target = Target(refused, control=serve(legacy()))
    with pytest.raises(UnreachableError, match="connection refused") as caught:
        detect(connect(target), timeout=0.5, model=None)
    assert str(caught.value).startswith(refused.removeprefix("dns:///") + ": ")


def test_control_and_data_listeners(serve: Serve, connect: Connect) -> None:
    """Discovery goes to the control listener when there is one."""
    target = Target(serve({}), control=serve(legacy()))
    declared = detect(connect(target), timeout=LONG, model=None)
    assert declared.target_class is TargetClass.LEGACY


def test_details_of_the_server_stay_on_one_line(serve: Serve, connect: Connect) -> None:
    """A status text with line ends does not break the error into several."""
    services = {
        "OpenEngineDiscovery": {
            "GetCapabilities": failing(grpc.StatusCode.INTERNAL, "Traceback\n  line 2")
        }
    }
    with pytest.raises(UnreachableError, match=r"\(Traceback line 2\)"):
        detect(connect(serve(services)), timeout=LONG, model=None)


def test_interrupted(connect: Connect, refused: str) -> None:
    """Ctrl-C during the wait ends it."""
    connection = connect(refused)
    connection.cancel_all()
    with pytest.raises(UnreachableError, match="interrupted"):
        detect(connection, timeout=LONG, model=None)
