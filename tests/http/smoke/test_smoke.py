from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.smoke import fixture_environment
from conformance.errors import ConfigError, HarnessError
from conformance.http.origin import Origin
from conformance.http.pinning import PinnedDialer, ResolveError
from conformance.http.policy import Policy, PolicyError
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.mutant import Change, HttpMutant, all_events, each_event
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.server import serving
from conformance.records import smoke as module
from conformance.records.leak import leak_of
from conformance.records.record import problem_of
from conformance.records.smoke import smoke
from conformance.records.smoke_contract import PREFIX, smoke_contract
from conformance.records.store import FILE

AUTH = {
    PREFIX + "AUTH_ENV": "OE_CONFORM_AUTH_TEST",
    PREFIX + "AUTH_HEADER": "authorization",
    "OE_CONFORM_AUTH_TEST": "Bearer marker-5d2f81c3-credential",
    PREFIX + "IDENTITY_ENV": "OE_CONFORM_KEY_TEST",
    "OE_CONFORM_KEY_TEST": "marker-a71e04d9-key-of-more-than-32-bytes",
}
OUTPUT = 'marker-77c0 \u00e4\u20ac"\n\\ answer \U0001f600'


def _mutant(change: Change | None) -> HttpMutant | None:
    return None if change is None else HttpMutant("test", "OE-HTTP-CHAT-001", "", on_reply=change)


def _run(
    store: Path, change: Change | None = None, route: str = "chat.stream", **smoke_arguments: Any
) -> dict[str, Any]:
    """The smoke record of a call of a server with this fault."""
    with serving(_mutant(change)) as server:
        words = fixture_environment(server.origin, route) | AUTH
        contract = smoke_contract(words, lambda _: fixture_profile())
        made = smoke(contract, words, store, **smoke_arguments)
    said: dict[str, Any] = json.loads(made.text)
    assert made.complete == (said["record"]["completion"]["class"] == "complete")
    assert problem_of("record", said["record"]) == ""
    return said


def _reply(**changed: Any) -> Change:
    """An answer with these parts changed."""

    def on_reply(ask: Ask, reply: Reply) -> Reply:
        return replace(reply, **changed)

    return on_reply


@pytest.mark.parametrize("route", ["chat", "chat.stream"])
def test_complete(tmp_path: Path, route: str) -> None:
    """A right answer is complete, with the provider's counts, and nulls where it has none."""
    said = _run(tmp_path, route=route)
    record = said["record"]
    assert (record["dispatch"], record["error"], record["http_status"]) == ("completed", None, 200)
    assert record["completion"] == {"class": "complete", "finish": "length"}
    assert record["usage"] == {"prompt": 7, "completion": 8, "total": 15, "cached": None}
    assert record["terminator_seen"] == (True if route == "chat.stream" else None)
    assert all(isinstance(value, int) for value in record["timing_us"].values())


def test_only_the_model_is_reported(tmp_path: Path) -> None:
    """The model was named by the provider; everything else stays the operator's word."""
    instance = _run(tmp_path)["instance"]
    sources = {name: field["source"] for name, field in instance.items()}
    assert sources.pop("model_id") == "provider-reported"
    assert set(sources.values()) == {"operator-configured"}


def test_another_model(tmp_path: Path) -> None:
    """A provider that names another model contradicts the operator, and changes nothing else."""

    def renamed(event: Event) -> Event:
        return event if isinstance(event.data, str) else Event({**event.data, "model": "other"})

    field = _run(tmp_path, each_event(renamed))["instance"]["model_id"]
    assert field == {"value": "scripted", "source": "operator-configured", "contradicted": True}


def _error(events: list[Event]) -> list[Event]:
    return [*events[:-1], Event({"error": {"message": OUTPUT, "code": 500}}), events[-1]]


def _without_usage(event: Event) -> Event | None:
    return None if isinstance(event.data, dict) and event.data.get("usage") else event


def _without_finish(event: Event) -> Event | None:
    ends = isinstance(event.data, dict) and any(c["finish_reason"] for c in event.data["choices"])
    return None if ends else event


FAULTS: dict[str, tuple[Change, str, str]] = {
    "no terminator": (all_events(lambda events: events[:-1]), "sent_unknown", "truncated"),
    "cut": (_reply(finish=False), "sent_unknown", "truncated"),
    "nothing": (_reply(silent=True), "sent_unknown", "truncated"),
    "error event": (all_events(_error), "sent_unknown", "stream_error_event"),
    "no usage": (each_event(_without_usage), "sent_unknown", "protocol_schema"),
    "no finish": (each_event(_without_finish), "sent_unknown", "protocol_schema"),
    "no JSON": (each_event(lambda _: Event("x")), "sent_unknown", "protocol_json"),
    "no stream": (_reply(events=None, body="{}"), "sent_unknown", "protocol_framing"),
    "400": (_reply(events=None, status=400, body={"error": OUTPUT}), "completed", "http_4xx"),
    "429": (_reply(events=None, status=429, body=OUTPUT), "completed", "http_429"),
    "503": (_reply(events=None, status=503, body=OUTPUT), "completed", "http_5xx"),
    "302": (
        _reply(events=None, status=302, headers={"location": "http://169.254.169.254/"}),
        "completed",
        "redirect_refused",
    ),
    "headers": (
        _reply(headers={f"x-{number}": "a" for number in range(70)}),
        "sent_unknown",
        "header_limit",
    ),
    "too much": (_reply(prefix=b":" + b"x" * (1 << 20) + b"\n"), "sent_unknown", "body_limit"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(tmp_path: Path, name: str) -> None:
    """Each fault of a server is told by its category, and is no complete call."""
    change, dispatch, category = FAULTS[name]
    record = _run(tmp_path, change)["record"]
    assert (record["dispatch"], record["error"]["category"]) == (dispatch, category)
    assert record["completion"]["class"] != "complete"


def test_a_server_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts and says nothing is left within the limit; the call is unknown."""
    monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, headers_seconds=0.2))
    record = _run(tmp_path, _reply(stall=True))["record"]
    assert record["error"] == {"category": "timeout_headers", "status": None}
    assert (record["dispatch"], record["usage"]["completion"]) == ("sent_unknown", None)


def _fails(error: Exception) -> Callable[[Origin, float], socket.socket]:
    def dial(origin: Origin, seconds: float) -> socket.socket:
        raise error

    return dial


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ResolveError("no"), "dns"),
        (ConnectionRefusedError("no"), "connect"),
        (TimeoutError("no"), "timeout_connect"),
        (PolicyError("no"), "policy_refused"),
    ],
)
def test_not_sent(tmp_path: Path, error: Exception, category: str) -> None:
    """What fails before a connection is there was not sent, for certain."""
    record = _run(tmp_path, dialer=_fails(error))["record"]
    assert (record["dispatch"], record["error"]["category"]) == ("not_sent", category)
    assert record["response_hmac"] is None


def test_one_call(tmp_path: Path) -> None:
    """Exactly one request goes out, to the one route, with the fixed number of tokens."""
    asks: list[Ask] = []

    def noted(ask: Ask, reply: Reply) -> None:
        asks.append(ask)

    _run(tmp_path, noted)
    assert [(ask.method, ask.path) for ask in asks] == [("POST", "/v1/chat/completions")]
    assert asks[0].json is not None
    assert asks[0].json["max_tokens"] == 8
    assert asks[0].headers["authorization"] == AUTH["OE_CONFORM_AUTH_TEST"]


def test_no_retry(tmp_path: Path) -> None:
    """A failed call is not made again."""
    dials: list[Origin] = []

    def dial(origin: Origin, seconds: float) -> socket.socket:
        dials.append(origin)
        raise ConnectionRefusedError("no")

    _run(tmp_path, dialer=dial)
    assert len(dials) == 1


@pytest.mark.parametrize("name", ["OE_CONFORM_AUTH_TEST", "OE_CONFORM_KEY_TEST"])
def test_unreadable_references(tmp_path: Path, name: str) -> None:
    """A reference to nothing fails before any contact, and leaves no intent."""
    words = fixture_environment("http://127.0.0.1:9", "chat") | AUTH
    del words[name]
    contract = smoke_contract(words, lambda _: fixture_profile())
    with pytest.raises(ConfigError, match=name):
        smoke(contract, words, tmp_path / "store", dialer=_fails(AssertionError("dialled")))
    assert not (tmp_path / "store").exists()


def _echoing(ask: Ask, reply: Reply) -> Reply:
    """A server that puts the output, the request and its headers wherever it can."""
    echoed = f"{OUTPUT} {ask.body.decode()} {ask.headers.get('authorization')}"
    if reply.events is None:
        return replace(reply, body={**reply.body, "model": echoed, "usage": {"x": echoed}})
    events = [
        event
        if isinstance(event.data, str)
        else Event({**event.data, "model": echoed, "id": echoed, "system_fingerprint": echoed})
        for event in reply.events
    ]
    return replace(reply, events=iter(events), headers={"x-echo": echoed.encode().hex()})


@pytest.mark.parametrize("route", ["chat", "chat.stream"])
@pytest.mark.parametrize(
    "change",
    [
        _echoing,
        _reply(events=None, status=500, body={"error": {"message": OUTPUT}}),
        _reply(events=None, body=OUTPUT),
    ],
)
def test_no_marker_anywhere(
    tmp_path: Path,
    route: str,
    change: Change,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Prompt, output, credential, key and origin are in no artifact, log or stream, in no form."""
    with caplog.at_level(0), serving(_mutant(change)) as server:
        words = fixture_environment(server.origin, route) | AUTH
        contract = smoke_contract(words, lambda _: fixture_profile())
        made = smoke(contract, words, tmp_path)
    out, err = capfd.readouterr()
    artifacts = [made.text, caplog.text, out, err, repr(contract), (tmp_path / FILE).read_text()]
    markers = [OUTPUT, module.PROMPT, AUTH["OE_CONFORM_AUTH_TEST"], AUTH["OE_CONFORM_KEY_TEST"]]
    parts = [part for marker in markers for part in (marker, marker[:20], marker[-16:])]
    for artifact in artifacts:
        assert leak_of(artifact.encode(), parts) == ""
    for artifact in (made.text, (tmp_path / FILE).read_text()):
        private = [server.origin, server.origin.removeprefix("http://"), "OE_CONFORM_AUTH_TEST"]
        assert leak_of(artifact.encode(), private) == ""


def test_the_check_before_printing_bites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a record ever hold a text, nothing is printed, and the error does not show it."""
    said = module._said

    def leaky(*arguments: Any) -> dict[str, Any]:
        return {**said(*arguments), "note": module.PROMPT.encode().hex()}

    monkeypatch.setattr(module, "_said", leaky)
    with pytest.raises(HarnessError, match="hex") as refused:
        _run(tmp_path)
    assert leak_of(str(refused.value).encode(), [module.PROMPT]) == ""


def test_policy_is_the_default(tmp_path: Path) -> None:
    """Without another dialer the call goes through the policy's own."""
    words = fixture_environment("http://127.0.0.1:9", "chat") | AUTH
    contract = smoke_contract(words, lambda _: fixture_profile())
    strict = replace(contract, policy=Policy())
    made = smoke(strict, words, tmp_path)
    assert json.loads(made.text)["record"]["error"]["category"] == "policy_refused"
    with pytest.raises(PolicyError):
        PinnedDialer(strict.policy)(strict.origin, 1.0)
