"""Checks of discovery against a right engine and engines that break one rule each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from oe_wire import health, v1
from tests.conformance.checks.core.engine_stub import (
    CONTROL,
    DISCOVERY,
    HEALTH,
    INFERENCE,
    StubEngine,
    declared_by,
    legacy,
    refuse,
    verdict,
)

Change = Callable[[StubEngine], Any]
NOT_RESTARTED = {9, 22}  # a restart hook and an admin pause would be needed
ROWS = [f"DISC-{number:03}" for number in range(1, 25) if number not in NOT_RESTARTED]
LEGACY_ROWS = [
    f"DISC-{number:03}" for number in (2, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21)
]
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
UINT32_MAX = 2**32 - 1


def _info(**fields: Any) -> Change:
    """An engine whose EngineInfo and ServerInfo have these scalars."""

    def change(engine: StubEngine) -> None:
        for name, value in fields.items():
            setattr(engine.info, name, value)

    return change


def _model(**fields: Any) -> Change:
    def change(engine: StubEngine) -> None:
        for name, value in fields.items():
            setattr(engine.model, name, value)

    return change


def _parallelism(**fields: int) -> Change:
    def change(engine: StubEngine) -> None:
        for name, value in fields.items():
            setattr(engine.info.parallelism, name, value)

    return change


def _refuses(name: str, code: grpc.StatusCode = UNIMPLEMENTED) -> Change:
    def change(engine: StubEngine) -> None:
        engine.replies[name] = refuse(code)

    return change


def _instance_changes(engine: StubEngine) -> None:
    calls: list[int] = []

    def reply(_request: Any, _context: Any) -> v1.EngineInfo:
        calls.append(1)
        info = v1.EngineInfo()
        info.CopyFrom(engine.info)
        info.instance_id = f"instance-{len(calls)}"
        return info

    engine.replies["OpenEngineDiscovery/GetEngineInfo"] = reply


def _server_info(change_field: Callable[[v1.ServerInfo], Any]) -> Change:
    def change(engine: StubEngine) -> None:
        def reply(request: Any, _context: Any) -> v1.ServerInfo:
            info = engine.get_server_info(request)
            change_field(info)
            return info

        engine.replies["Control/GetServerInfo"] = reply

    return change


def _other_model_info(engine: StubEngine) -> None:
    def reply(request: v1.GetModelInfoRequest, _context: Any) -> v1.ModelInfo:
        info = v1.ModelInfo()
        info.CopyFrom(engine.get_model_info(request))
        info.max_context_length += 1
        return info

    engine.replies["Control/GetModelInfo"] = reply


def _any_model(engine: StubEngine) -> None:
    engine.replies["OpenEngineDiscovery/GetModelInfo"] = lambda _request, _context: engine.model
    engine.replies["Control/GetModelInfo"] = lambda _request, _context: engine.model


def _alias_of_another(engine: StubEngine) -> None:
    def reply(request: v1.GetModelInfoRequest, _context: Any) -> v1.ModelInfo:
        info = v1.ModelInfo()
        info.CopyFrom(engine.get_model_info(request))
        if request.model == "stub":
            info.model_id = "org/other"
        return info

    engine.replies["OpenEngineDiscovery/GetModelInfo"] = reply


def _alias_unknown(engine: StubEngine) -> None:
    def reply(request: v1.GetModelInfoRequest, context: Any) -> v1.ModelInfo:
        if request.model == "stub":
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown")
        return engine.get_model_info(request)

    engine.replies["OpenEngineDiscovery/GetModelInfo"] = reply


def _alias_not_generated(engine: StubEngine) -> None:
    def reply(request: v1.GenerateRequest, context: Any) -> Any:
        if request.model == "stub":
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown")
        return engine.generate(request)

    engine.replies["Inference/Generate"] = reply


def _listed_but_unknown(engine: StubEngine) -> None:
    engine.info.supported_models.append("ghost")


def _load_grows(engine: StubEngine) -> None:
    def reply(request: Any, _context: Any) -> v1.EngineInfo:
        engine.load.running_requests += 1
        return engine.info

    engine.replies["OpenEngineDiscovery/GetEngineInfo"] = reply


def _health_moves(engine: StubEngine) -> None:
    """No load report, and a health state that discovery calls change."""
    engine.replies["Control/GetLoad"] = refuse(UNIMPLEMENTED)

    def reply(request: v1.GetModelInfoRequest, _context: Any) -> v1.ModelInfo:
        engine.state.state = v1.HEALTH_STATE_DEGRADED
        return engine.get_model_info(request)

    engine.replies["OpenEngineDiscovery/GetModelInfo"] = reply


def _no_models(engine: StubEngine) -> None:
    del engine.info.supported_models[:]


def _not_serving(engine: StubEngine) -> None:
    _no_models(engine)
    engine.names[INFERENCE] = health.HealthCheckResponse.NOT_SERVING


def _kv_source(host: str, port: int) -> Change:
    source = v1.KvEventSource(endpoint_addr=v1.KvEndpoint(host=host, port=port))
    answer = v1.GetKvEventSourcesResponse(sources=[source])

    def change(engine: StubEngine) -> None:
        engine.replies["Control/GetKvEventSources"] = lambda _request, _context: answer

    return change


def _local_endpoint(host: str, port: int) -> Change:
    def change(engine: StubEngine) -> None:
        engine.info.kv_connector.local_endpoints.add(host=host, port=port)

    return change


def _unspecified_mode(engine: StubEngine) -> None:
    engine.model.generation.output_logprobs.candidate_selection_modes.append(0)


def _repeated_kind(engine: StubEngine) -> None:
    engine.scope.core.abort_targets.append(v1.ABORT_TARGET_KIND_REQUEST_ID)


def _modes_unsupported(engine: StubEngine) -> None:
    engine.model.generation.guided_decoding.modes.append(v1.GUIDED_DECODING_MODE_REGEX)


def _load(**fields: int) -> Change:
    def change(engine: StubEngine) -> None:
        for name, value in fields.items():
            setattr(engine.load, name, value)

    return change


@pytest.mark.parametrize("row", [row for row in ROWS if row != "DISC-024"])
def test_right_engine_passes(row: str) -> None:
    """Every discovery check passes on a right engine."""
    assert verdict(row, StubEngine()) == "pass"


def test_drawn_names_pass() -> None:
    """A right engine passes DISC-012 for any drawn name."""
    assert verdict("DISC-012", StubEngine(), drawn=12) == "pass"


@pytest.mark.parametrize("row", LEGACY_ROWS)
def test_legacy_engine_passes(row: str) -> None:
    """The rows that run on v0.1.0 engines pass without discovery."""
    engine = StubEngine()
    legacy(engine)
    assert verdict(row, engine) == "pass"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        *[
            ("DISC-001", _refuses(name))
            for name in (
                "OpenEngineDiscovery/GetEngineInfo",
                "OpenEngineDiscovery/GetModelInfo",
                "OpenEngineDiscovery/GetCapabilities",
                "Health/Check",
                "Health/Watch",
            )
        ],
        *[
            ("DISC-002", _refuses(name))
            for name in (
                "Control/GetServerInfo",
                "Control/GetModelInfo",
                "Control/Health",
                "Control/Abort",
                "Inference/Generate",
            )
        ],
        ("DISC-003", _server_info(lambda info: info.supported_models.append("more"))),
        ("DISC-003", _server_info(lambda info: info.ClearField("parallelism"))),
        ("DISC-003", _server_info(lambda info: info.extra.update({"a": 1}))),
        ("DISC-004", _other_model_info),
        ("DISC-004", _refuses("Control/GetModelInfo", grpc.StatusCode.NOT_FOUND)),
        ("DISC-005", _info(schema_revision=0)),
        ("DISC-006", _info(minimum_client_revision=0)),
        ("DISC-006", _info(minimum_client_revision=2)),
        ("DISC-007", _info(schema_release="")),
        ("DISC-007", _info(schema_release="Main")),
        ("DISC-007", _info(schema_release="refs/heads/master")),
        ("DISC-008", _info(instance_id="")),
        ("DISC-008", _instance_changes),
        ("DISC-010", _no_models),
        ("DISC-010", lambda engine: engine.info.supported_models.append("")),
        ("DISC-010", lambda engine: engine.info.supported_models.append("stub-model")),
        ("DISC-011", _listed_but_unknown),
        ("DISC-012", _any_model),
        ("DISC-012", _refuses("OpenEngineDiscovery/GetModelInfo")),
        ("DISC-013", _any_model),
        ("DISC-013", _refuses("OpenEngineDiscovery/GetModelInfo", grpc.StatusCode.NOT_FOUND)),
        ("DISC-014", _alias_of_another),
        ("DISC-014", _alias_unknown),
        ("DISC-014", _alias_not_generated),
        ("DISC-015", _model(max_context_length=0)),
        ("DISC-015", _model(max_output_tokens=UINT32_MAX)),
        ("DISC-015", _load(total_kv_blocks=2**64 - 1)),
        ("DISC-015", lambda engine: engine.load.ranks.add(running_requests=UINT32_MAX)),
        ("DISC-015", lambda engine: setattr(engine.info.capacity, "max_loras", UINT32_MAX)),
        ("DISC-016", _parallelism(decode_context_parallel_size=0)),
        ("DISC-017", _parallelism(data_parallel_rank=2)),
        ("DISC-017", _parallelism(data_parallel_start_rank=2)),
        ("DISC-018", _local_endpoint("", 7000)),
        ("DISC-018", _local_endpoint("[::]", 7000)),
        ("DISC-018", _local_endpoint("10.0.0.1", 0)),
        ("DISC-018", _local_endpoint("10.0.0.1", 65536)),
        ("DISC-018", _kv_source("*", 7000)),
        ("DISC-019", _model(max_output_tokens=8193)),
        ("DISC-020", _unspecified_mode),
        ("DISC-020", _repeated_kind),
        ("DISC-021", _modes_unsupported),
        ("DISC-023", _load_grows),
        ("DISC-023", _health_moves),
    ],
)
def test_broken_engine_fails(row: str, change: Change) -> None:
    """The check of a row fails on an engine that breaks just that row."""
    engine = StubEngine()
    declared = declared_by(engine)
    change(engine)
    if row in {"DISC-011", "DISC-015"}:
        declared = declared_by(engine)
    assert verdict(row, engine, declared=declared, slow_factor=0.5) == "fail"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("DISC-014", lambda engine: engine.model.ClearField("served_model_aliases")),
        ("DISC-016", lambda engine: engine.info.ClearField("parallelism")),
        ("DISC-017", lambda engine: engine.info.parallelism.ClearField("data_parallel_rank")),
        ("DISC-017", lambda engine: engine.info.parallelism.ClearField("data_parallel_size")),
        ("DISC-019", lambda engine: engine.model.ClearField("max_output_tokens")),
        ("DISC-024", lambda engine: None),
        ("DISC-006", _info(schema_revision=0)),
    ],
)
def test_absent_precondition_skips(row: str, change: Change) -> None:
    """A check says nothing where the engine does not report what its row is about."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine) == "skip"


def test_busy_engine_skips() -> None:
    """DISC-023 says nothing while other requests run."""
    engine = StubEngine()
    engine.load.queued_requests = 1
    assert verdict("DISC-023", engine, slow_factor=0.1) == "skip"


@pytest.mark.parametrize("release", ["v0.1.0", "6f1c2ab", "release-2026.11", "mainline-1"])
def test_fixed_release_passes(release: str) -> None:
    """Tags and commits are no moving names."""
    engine = StubEngine()
    engine.info.schema_release = release
    assert verdict("DISC-007", engine) == "pass"


def test_models_may_be_missing_before_serving() -> None:
    """DISC-010 takes an empty list while Inference is NOT_SERVING."""
    engine = StubEngine()
    declared = declared_by(engine)
    _not_serving(engine)
    assert verdict("DISC-010", engine, declared=declared) == "pass"


def test_alias_passes_when_nothing_is_generated() -> None:
    """DISC-014 does not blame an alias where the served name is refused too."""
    engine = StubEngine()
    engine.replies["Inference/Generate"] = refuse(grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert verdict("DISC-014", engine) == "skip"


def test_profile_roles_may_be_unspecified() -> None:
    """An engine of no fixed role may say so in the roles of a profile."""
    engine = StubEngine()
    engine.scope.profiles[0].roles.append(v1.ENGINE_ROLE_UNSPECIFIED)
    assert verdict("DISC-020", engine) == "pass"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("DISC-012", _any_model),
        ("DISC-013", _refuses("Control/GetModelInfo", grpc.StatusCode.NOT_FOUND)),
    ],
)
def test_legacy_tolerance(row: str, change: Change) -> None:
    """A v0.1.0 engine is only warned about what its row tolerates."""
    engine = StubEngine()
    legacy(engine)
    declared = declared_by(engine)
    change(engine)
    assert verdict(row, engine, declared=declared) == "tolerated"


def test_legacy_engine_without_empty_check_fails() -> None:
    """DISC-013 tolerates another refusal of the empty name, not an answer."""
    engine = StubEngine()
    legacy(engine)
    _any_model(engine)
    assert verdict("DISC-013", engine) == "fail"


def _endpoints(engine: StubEngine, port: int, services: tuple[str, ...]) -> None:
    for service in services:
        engine.info.service_endpoints.add(service=service, host="127.0.0.1", port=port)


ALL = (INFERENCE, CONTROL, DISCOVERY, HEALTH)


@pytest.mark.parametrize(
    ("services", "known", "expected"),
    [
        (ALL, ALL, "pass"),
        ((*ALL, "com.example.Extra"), ALL, "pass"),
        (ALL[1:], ALL, "fail"),
        ((*ALL, CONTROL), ALL, "fail"),
        (ALL, (INFERENCE, CONTROL), "fail"),
    ],
)
def test_service_endpoints(
    services: tuple[str, ...], known: tuple[str, ...], expected: str
) -> None:
    """Each advertised service is listed once, at a listener whose health knows it."""
    engine, listener = StubEngine(), StubEngine()
    listener.names = dict.fromkeys(known, engine.names[INFERENCE])
    server, address = listener.serve()
    try:
        _endpoints(engine, int(address.rpartition(":")[2]), services)
        assert verdict("DISC-024", engine) == expected
    finally:
        server.stop(None)


def test_service_endpoint_that_refuses_fails() -> None:
    """DISC-024 fails on an endpoint where nothing listens."""
    engine = StubEngine()
    server, address = StubEngine().serve()
    server.stop(None).wait(10)
    _endpoints(engine, int(address.rpartition(":")[2]), ALL)
    assert verdict("DISC-024", engine, slow_factor=0.2) == "fail"
