"""Requests that fail inside a stream: stated by a profile or an operator, or nothing is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from conformance.errors import ConfigError
from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import fixture_profile, options_for
from conformance.mutants.http.matrix import BUDGET
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.reply import RefusedError, Reply
from conformance.mutants.http.server import serving
from conformance.runner.http_session import open_http_session
from conformance.runner.run import run_http
from conformance.runner.settings import load_settings
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import RuntimeProfile
from conformance.runtimes.stream_error import StreamError

ROW = "OE-HTTP-COMP-032"
BAD = {"prompt": "Please BAD"}
NOTHING: Mapping[str, Mapping[str, object]] = {}


def judged(
    stated: Mapping[str, Mapping[str, object]] = NOTHING,
    *,
    mutant: HttpMutant | None = None,
    profile: RuntimeProfile | None = None,
) -> tuple[Status, str]:
    """The row of Completions on the fixture with an unknown model, as far as the suite is told."""
    with serving(mutant) as server:
        options = options_for(server.origin, scripted=False, budget=BUDGET, ids=(ROW,))
        options = replace(options, profile=profile or options.profile, stream_errors=stated)
        report = run_http(options)
    (found,) = [each for each in report.judgements if each.requirement == ROW]
    return found.status, found.detail


def test_nothing_known_is_no_pass() -> None:
    """The row says what is missing."""
    status, detail = judged()
    assert status is Status.HOOK_MISSING
    assert "[stream_errors.completions]" in detail


def test_an_operator_states_one() -> None:
    """Then it is judged, of any model."""
    assert judged({"completions": BAD}) == (Status.PASS, "")
    assert judged({"chat": BAD})[0] is Status.HOOK_MISSING


def test_what_does_not_fail_says_nothing() -> None:
    """An ordinary answer is no breach: what was stated was wrong."""
    status, detail = judged({"completions": {"prompt": "Please RUN"}})
    assert status is Status.HOOK_MISSING
    assert "did not fail" in detail


def test_what_fails_before_the_stream_says_nothing() -> None:
    """A status of its own is another thing."""

    def refused(ask: Ask, reply: Reply) -> Reply | None:
        return RefusedError(500, "no").reply if b"BAD" in ask.body else None

    mutant = HttpMutant("early", ROW, "", on_reply=refused)
    status, detail = judged({"completions": BAD}, mutant=mutant)
    assert status is Status.HOOK_MISSING
    assert "status 500" in detail


def test_a_condition_has_to_be_stated() -> None:
    """Of the profile's requests those count that hold for this server."""
    runtime = replace(
        fixture_profile(),
        stream_errors=(StreamError("chat", BAD, "seen", scripted=True, condition="small"),),
    )
    assert "small" in runtime.conditions
    assert HttpDeclared(runtime, scripted=True).failing("chat") is None
    small = frozenset({"small"})
    assert HttpDeclared(runtime, conditions=small).failing("chat") is None
    assert HttpDeclared(runtime, scripted=True, conditions=small).failing("chat") == BAD
    own = HttpDeclared(runtime, stream_errors=MappingProxyType({"chat": {"n": 2}}))
    assert own.failing("chat") == {"n": 2}


def test_settings(tmp_path: Path) -> None:
    """A table for each route."""
    file = tmp_path / "oe.toml"
    file.write_text('[stream_errors.chat]\nmax_tokens = 4096\nmessages = [{ role = "user" }]\n')
    stated = load_settings(file).stream_errors
    assert stated["chat"] == {"max_tokens": 4096, "messages": [{"role": "user"}]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stream_errors = 5\n", "stream_errors is no table"),
        ("[stream_errors]\nchat = 5\n", "stream_errors.chat has no fields"),
        ("[stream_errors.chat]\n", "stream_errors.chat has no fields"),
        ("[stream_errors.chat]\nstream = false\n", "sets 'stream'"),
        ('[stream_errors.chat]\nmodel = "other"\n', "sets 'model'"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, said: str) -> None:
    """Before anything is called."""
    file = tmp_path / "oe.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_settings(file)


@pytest.mark.parametrize("route", ["chats", "models"])
def test_a_route_without_streams_is_named(route: str) -> None:
    """One that the runtime does not have, and one that has none."""
    with serving() as server, pytest.raises(ConfigError, match="streaming route"):
        open_http_session(replace(options_for(server.origin), stream_errors={route: BAD}))
