"""Checks of Chat Completions: what its laws and the bodies shared with Completions find."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.check import Check
from conformance.checks.http import shared
from conformance.checks.http.check import HttpTable, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import CHAT_API, GREEDY, TextApi, scripted_or_open, send
from conformance.model.case import Case
from conformance.runtimes.script import EMO, RUN

SharedBody = Callable[[HttpProbe, TextApi, Case], None]

BOTH = params({"stream": False}, {"stream": True})
SCRIPTS = params({"script": "run"}, {"script": "emo"}, {"script": "loop"})


def for_api(
    requirement: str, api: TextApi, body: SharedBody, advice: str, table: HttpTable
) -> Check:
    """A shared body as a check of one API."""

    def run(probe: HttpProbe, case: Case) -> None:
        body(probe, api, case)

    name = f"http.{api.contract.removeprefix('openai-')}.{body.__name__}"
    return Check(requirement, run, table, None, advice, name)


def seen_law(requirement: str, api: TextApi, advice: str, table: HttpTable) -> Check:
    """A check whose rule is a law: it makes calls that the law judges."""

    def run(probe: HttpProbe, case: Case) -> None:
        chosen = dict(case.params)
        stream = bool(chosen.pop("stream", False))
        options = chosen.pop("options", "absent")
        if options != "absent":
            chosen["stream_options"] = options
        script = EMO if chosen.pop("script", "run") == "emo" else RUN
        prompt = scripted_or_open(probe, script)
        send(probe, api, prompt, stream=stream, **{"max_tokens": 16, **GREEDY, **chosen})
        probe.settle()

    name = f"http.{api.contract.removeprefix('openai-')}.seen_law"
    return Check(requirement, run, table, None, advice, name)


STREAM = params({"stream": True}, {"stream": True, "script": "emo"})
UNARY = params({})
# One token of four is no text yet.
EMPTY_TOO = params({}, {"script": "emo", "max_tokens": 1})
STREAM_AND_UNARY = params({"stream": True}, {"stream": False})
WITH_USAGE = params({"stream": True, "options": {"include_usage": True}})


def without_usage(declared: object) -> list[Case]:
    """Streams that ask for no usage, in each way that there is."""
    del declared
    ways: list[object] = ["absent", {}, {"include_usage": False}]
    return [Case(params={"stream": True, "options": way}) for way in ways]


LAW_CHECKS = tuple(
    seen_law(requirement, CHAT_API, advice, table)
    for requirement, advice, table in (
        ("OE-HTTP-CHAT-001", "Send object, id, created, model and numbered choices.", UNARY),
        ("OE-HTTP-CHAT-002", "Give all chunks of a stream one id and one model.", STREAM),
        ("OE-HTTP-CHAT-003", "Begin each choice with the role assistant.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-004", "Send finish_reason null until the last chunk of a choice.", STREAM),
        ("OE-HTTP-CHAT-005", "Use the reasons that the API defines.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-006", "Send finish_reason after all content.", STREAM),
        ("OE-HTTP-CHAT-007", "End each stream with the event [DONE].", STREAM),
        ("OE-HTTP-CHAT-008", "Send usage in a last chunk of its own, with choices [].", WITH_USAGE),
        ("OE-HTTP-CHAT-009", "Send usage only where include_usage is true.", without_usage),
        ("OE-HTTP-CHAT-010", "Report counts whose total is their sum.", UNARY),
        ("OE-HTTP-CHAT-025", "Send logprobs only where they are asked for.", STREAM_AND_UNARY),
        ("OE-HTTP-CHAT-032", "Number choices below n; end a stream after an error.", STREAM),
        ("OE-HTTP-CHAT-033", "Send content, be it null, in each message.", EMPTY_TOO),
    )
)


def _stopped_whole(probe: HttpProbe, api: TextApi, case: Case) -> None:
    shared.stopped(probe, api, case, stream=False)


def _stopped_stream(probe: HttpProbe, api: TextApi, case: Case) -> None:
    shared.stopped(probe, api, case, stream=True)


STOP_CASES = params(*({"stop": stop} for stop in shared.STOPS), {"stop": "gamma", "list": True})
CUT_CASES = params(
    *({"max_tokens": most, "stream": stream} for most in (1, 5) for stream in (False, True))
)
BAD_SCHEMAS = params({"schema": {"type": "nonsense"}}, {"schema": 5})

BODY_CHECKS = tuple(
    for_api(requirement, CHAT_API, body, advice, table)
    for requirement, body, advice, table in (
        ("OE-HTTP-CHAT-011", shared.own_end, "Report the end token as stop.", BOTH),
        ("OE-HTTP-CHAT-012", shared.cut, "Count tokens, and report length.", CUT_CASES),
        ("OE-HTTP-CHAT-013", _stopped_whole, "Match stop strings in the text.", STOP_CASES),
        ("OE-HTTP-CHAT-014", _stopped_stream, "Hold back what may be a stop string.", STOP_CASES),
        ("OE-HTTP-CHAT-015", shared.released, "Send what is held back at the end.", BOTH),
        ("OE-HTTP-CHAT-016", shared.whole_characters, "Hold back incomplete UTF-8.", UNARY),
        (
            "OE-HTTP-CHAT-017",
            shared.cut_character,
            "Treat an incomplete character at the end alike in both forms.",
            params(*({"max_tokens": most} for most in (1, 2, 3))),
        ),
        ("OE-HTTP-CHAT-018", shared.stream_equals_unary, "Make both of one generation.", SCRIPTS),
        ("OE-HTTP-CHAT-019", shared.same_usage, "Count once for both forms.", SCRIPTS),
        (
            "OE-HTTP-CHAT-020",
            shared.several,
            "Generate n choices.",
            params({"n": 2, "stream": False}),
        ),
        (
            "OE-HTTP-CHAT-021",
            shared.several,
            "Generate n choices.",
            params({"n": 2, "stream": True}),
        ),
        (
            "OE-HTTP-CHAT-026",
            shared.seeded,
            "Seed the sampler of each request.",
            params({"seed": 42}, {"seed": 43}),
        ),
        (
            "OE-HTTP-CHAT-027",
            shared.sampled,
            "Sample at a temperature above 0.",
            params({"seeds": "different"}, {"seeds": "none"}),
        ),
        ("OE-HTTP-CHAT-028", shared.constrained, "Constrain sampling by the schema.", BOTH),
        ("OE-HTTP-CHAT-029", shared.bad_schema, "Refuse what is no JSON Schema.", BAD_SCHEMAS),
        (
            "OE-HTTP-CHAT-030",
            shared.prefix,
            "Let max_tokens only end the answer.",
            params({"small": 1, "large": 4}, {"small": 4, "large": 9}),
        ),
        ("OE-HTTP-CHAT-031", shared.nothing, "Refuse max_tokens 0.", BOTH),
        ("OE-HTTP-CHAT-034", shared.ordinary, "Serve plain requests.", BOTH),
    )
)
