"""Models of which nothing is known: what they are asked, what shows with them, and what does not
count against them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.checks.http.check import params
from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import fixture_profile, options_for
from conformance.mutants.http.matrix import BUDGET
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import serving
from conformance.mutants.http.table import http_mutants
from conformance.runner.run import run_http
from conformance.runtimes.declared import HttpDeclared

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
LEFT = "OE-HTTP-CANCEL-001"


def judged(mutant: HttpMutant, row: str) -> tuple[Status, str]:
    """What a row says of a server whose model is not known."""
    with serving(mutant) as server:
        report = run_http(options_for(server.origin, scripted=False, budget=BUDGET, ids=(row,)))
    (found,) = [each for each in report.judgements if each.requirement == row]
    return found.status, found.detail


def test_what_only_the_scripted_model_is_asked_makes_no_case_of_its_own() -> None:
    """Cases that differ in that alone are one, the first; everything else stays, in order."""
    each = (
        {"stream": True, "script": "run"},
        {"stream": True, "script": "emo"},
        {"stream": False, "script": "emo"},
        {"stop": "gamma", "list": True},
        {"stop": "delta", "list": True},
    )
    table = params(*each)
    other = HttpDeclared(fixture_profile())
    assert [case.params for case in table(replace(other, scripted=True))] == list(each)
    assert [case.params for case in table(other)] == [each[0], each[2], each[3]]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("chat-held-at-the-limit", "OE-HTTP-CHAT-015"),
        ("completions-held-at-the-limit", "OE-HTTP-COMP-014"),
    ],
)
def test_what_is_lost_at_a_limit_shows_with_any_model(name: str, row: str) -> None:
    """A small limit ends the answer of every model."""
    (mutant,) = [each for each in http_mutants() if each.name == name]
    assert judged(mutant, row)[0] is Status.FAIL


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ("OE-HTTP-CHAT-018", CHAT),
        ("OE-HTTP-COMP-017", COMPLETIONS),
        ("OE-HTTP-CHAT-030", CHAT),
        ("OE-HTTP-COMP-026", COMPLETIONS),
    ],
)
def test_a_first_answer_that_is_off_blames_nobody(row: str, path: str) -> None:
    """What comes from a cache is rounded otherwise than what came before it was filled."""

    def off(ask: Ask, reply: Reply) -> None:
        if ask.path == path and reply.events is None and not ask.state.get("warm"):
            ask.state["warm"] = True
            choice = reply.body["choices"][0]
            holder, name = (choice["message"], "content") if path == CHAT else (choice, "text")
            holder[name] = f"Also {holder[name]}"

    status, _ = judged(HttpMutant("test", row, "", on_reply=off), row)
    assert status in {Status.PASS, Status.BLOCKED}


def test_long_answers_are_asked_for_in_the_words_of_the_route() -> None:
    """Where instructions are followed, and where a text is gone on with."""
    prompts: dict[str, str] = {}

    def seen(ask: Ask) -> None:
        limit = max((ask.json or {}).get(name, 0) for name in ("max_tokens", "max_output_tokens"))
        if limit > 64:
            prompts[ask.path] = str(ask.json or {})

    judged(HttpMutant("test", LEFT, "", on_ask=seen), LEFT)
    assert "story" in prompts[CHAT]
    assert "story" in prompts[RESPONSES]
    assert "13, 14, 15," in prompts[COMPLETIONS]
