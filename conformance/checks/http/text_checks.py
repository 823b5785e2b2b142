"""How the checks of the two text APIs are made: shared bodies and laws, with the ids of one API."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.check import Check
from conformance.checks.http import shared
from conformance.checks.http.check import HttpStrategy, HttpTable, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.text_api import GREEDY, TextApi, scripted_or_open, send
from conformance.laws.http import http_laws
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.script import EMO, RUN

SharedBody = Callable[[HttpProbe, TextApi, Case], None]

BOTH = params({"stream": False}, {"stream": True})
SCRIPTS = params({"script": "run"}, {"script": "emo"}, {"script": "loop"})


def stopped_whole(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Stop strings in one piece."""
    shared.stopped(probe, api, case, stream=False)


def stopped_stream(probe: HttpProbe, api: TextApi, case: Case) -> None:
    """Stop strings in a stream."""
    shared.stopped(probe, api, case, stream=True)


def _stops(declared: HttpDeclared) -> SearchStrategy[Case]:
    """Any piece of the run as stop string. Of another model only the middle of its answer is one,
    and that is in the table.
    """
    if not declared.scripted:
        return st.nothing()
    lengths = st.integers(1, 8)
    starts = st.integers(0, len(RUN.text) - 1)
    return st.builds(
        lambda start, length: Case(params={"stop": RUN.text[start : start + length]}),
        starts,
        lengths,
    )


def _cuts(_: HttpDeclared) -> SearchStrategy[Case]:
    """Any small limit, in both forms."""
    return st.builds(
        lambda most, stream: Case(params={"max_tokens": most, "stream": stream}),
        st.integers(1, 20),
        st.booleans(),
    )


def _prefixes(_: HttpDeclared) -> SearchStrategy[Case]:
    """Any two small limits."""
    return st.builds(
        lambda small, more: Case(params={"small": small, "large": small + more}),
        st.integers(1, 8),
        st.integers(1, 8),
    )


# Cases that are drawn after the table, by body.
_SEARCHED: Mapping[SharedBody, HttpStrategy] = {
    stopped_whole: _stops,
    stopped_stream: _stops,
    shared.cut: _cuts,
    shared.prefix: _prefixes,
}


def for_api(
    requirement: str, api: TextApi, body: SharedBody, advice: str, table: HttpTable
) -> Check:
    """A shared body as a check of one API."""

    def run(probe: HttpProbe, case: Case) -> None:
        body(probe, api, case)

    name = f"http.{api.contract.removeprefix('openai-')}.{body.__name__}"
    return Check(requirement, run, table, _SEARCHED.get(body), advice, name)


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

    rule = http_laws()[requirement].judge.__name__
    name = f"http.{api.contract.removeprefix('openai-')}.{rule}"
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


STOP_CASES = params(*({"stop": stop} for stop in shared.STOPS), {"stop": "gamma", "list": True})
# The model's own end, and a limit that comes before it.
RELEASED = params(
    *({"stream": stream, **most} for most in ({}, {"max_tokens": 5}) for stream in (False, True))
)
CUT_CASES = params(
    *({"max_tokens": most, "stream": stream} for most in (1, 5) for stream in (False, True))
)
CUT_CHARACTERS = params(*({"max_tokens": most} for most in (1, 2, 3)))
PREFIXES = params({"small": 1, "large": 4}, {"small": 4, "large": 9})
SEEDS = params({"seed": 42}, {"seed": 43})
SAMPLED = params({"seeds": "different"}, {"seeds": "none"})
TWO = params({"n": 2, "stream": False})
TWO_STREAMED = params({"n": 2, "stream": True})
