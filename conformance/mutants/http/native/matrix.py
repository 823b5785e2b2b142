"""The right server of native routes, and the checks of their contracts against each mutant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from conformance.http.limits import DEFAULT
from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import Status
from conformance.mutants.ended import whole
from conformance.mutants.http.ask import MODEL, Ask
from conformance.mutants.http.matrix import BUDGET, PATIENCE, HttpTrial
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.native import lmstudio, ollama, tgi
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import Answer, serving
from conformance.runner.http_session import HttpOptions
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.profile import RuntimeProfile
from conformance.runtimes.registry import load_runtime

CONTRACTS = ("ollama-native", "tgi-native", "lmstudio-native")
_IDS = ("OE-HTTP-OLLAMA-*", "OE-HTTP-TGI-*", "OE-HTTP-LMS-*")
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR})


def version(_: Ask) -> Reply:
    """Which build this is."""
    return Reply(body={"version": "1"})


NATIVE_ROUTES: Mapping[tuple[str, str], Answer] = {
    ("GET", "/api/version"): version,
    ("POST", ollama.CHAT): ollama.chat,
    ("POST", ollama.GENERATE): ollama.generate,
    ("POST", tgi.WHOLE): tgi.generate,
    ("POST", tgi.STREAM): tgi.generate_stream,
    ("POST", lmstudio.PATH): lmstudio.chat,
}


@cache
def native_profile() -> RuntimeProfile:
    """The runtime profile of the right server."""
    return load_runtime(resources.files(__package__) / "native@1.toml", http_registry())


def native_options(
    origin: str, *, scripted: bool = True, ids: tuple[str, ...] = _IDS
) -> HttpOptions:
    """Options for a server with these routes."""
    return HttpOptions(
        HttpTarget(parse_origin(origin)),
        native_profile(),
        model=MODEL,
        scripted=scripted,
        budget=BUDGET,
        selection=Selection(ids=ids),
        limits=DEFAULT.within(PATIENCE),
        seed=0,
    )


def native_statuses(
    mutant: HttpMutant | None = None, *, scripted: bool = True, ids: tuple[str, ...] = _IDS
) -> Mapping[str, tuple[Status, str]]:
    """Status and detail of every row of the three contracts."""
    with serving(mutant, NATIVE_ROUTES) as server:
        report = whole(run_http(native_options(server.origin, scripted=scripted, ids=ids)))
    return {
        judgement.requirement: (judgement.status, judgement.detail)
        for judgement in report.judgements
        if judgement.status not in {Status.EXCLUDED, Status.NOT_APPLICABLE}
    }


def native_broken(*, scripted: bool = True) -> Mapping[str, str]:
    """Rows that the right server breaks: none, or no trial proves anything."""
    found = native_statuses(scripted=scripted)
    return {name: said for name, (status, said) in found.items() if status in _BROKEN}


def try_native_mutant(mutant: HttpMutant, *, own_only: bool = False) -> HttpTrial:
    """Run the checks of the native contracts against one mutant, or its own check only. An
    unrelated row counts as broken when it breaks in a second run too.
    """
    ids = (mutant.requirement,) if own_only else _IDS
    found = native_statuses(mutant, ids=ids)
    broken = {name: each for name, each in found.items() if each[0] in _BROKEN}
    status, detail = broken.pop(mutant.requirement, (Status.PASS, "it held"))
    collateral = {name: said for name, (_, said) in broken.items() if name not in mutant.also}
    if collateral:
        again = native_statuses(mutant, ids=ids)
        collateral = {name: said for name, said in collateral.items() if again[name][0] in _BROKEN}
    return HttpTrial(mutant, status, detail, collateral)
