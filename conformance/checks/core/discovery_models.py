"""Model names: served ones and aliases resolve, both services agree, unknown names are refused."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    aliases,
    answer,
    ask_model,
    supported_models,
)
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.wire.declared import Declared
from oe_wire import v1

NAME_LENGTH = 32
_UNKNOWN = "no-such-model-7f3a91c05be2d846af"
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_."


def _names(declared: Declared) -> Iterable[Case]:
    """Every kind of name: served, alias, unknown, empty."""
    known = [*supported_models(declared), *aliases(declared)[:1]]
    return [Case(params={"model": name}) for name in (*known, _UNKNOWN, "")]


def _unknown_name(_: Declared) -> Iterable[Case]:
    return (Case(params={"model": _UNKNOWN}),)


def _unknown_names(declared: Declared) -> SearchStrategy[Case]:
    """Names of 32 characters, and served names with a tail that makes them unknown."""
    drawn = st.text(_LETTERS, min_size=NAME_LENGTH, max_size=NAME_LENGTH)
    tail = st.text("0123456789abcdef", min_size=12, max_size=12)
    served = declared.model_name or "model"
    names = st.one_of(drawn, tail.map(lambda text: f"{served}-{text}"))
    return names.map(lambda name: Case(params={"model": name}))


def _alias_cases(declared: Declared) -> Iterable[Case]:
    """One case for each alias; a case without one, which is skipped, where there is none."""
    return [Case(params={"alias": alias}) for alias in aliases(declared)[:4]] or (Case(),)


@check(
    "OE-CORE-DISC-004",
    table=_names,
    advice="Register one handler under both names, OpenEngineDiscovery.GetModelInfo and "
    "Control.GetModelInfo.",
)
def both_model_infos_agree(probe: Probe, case: Case) -> None:
    """The two GetModelInfo RPCs give the same status and the same message for one name."""
    request = v1.GetModelInfoRequest(model=case.params["model"])
    ours = probe.call("OpenEngineDiscovery/GetModelInfo", request)
    theirs = probe.call("Control/GetModelInfo", request)
    if ours.ending.code is not theirs.ending.code:
        probe.fail(
            f"{ours.ending.code.name} from Control.GetModelInfo, as from OpenEngineDiscovery",
            describe(theirs),
            theirs,
        )
    ours_message, theirs_message = answer(ours, v1.ModelInfo), answer(theirs, v1.ModelInfo)
    if ours_message != theirs_message:
        probe.fail(
            "the same ModelInfo from both services",
            "different messages",
            theirs,
        )


@check(
    "OE-CORE-DISC-011",
    advice="Answer GetModelInfo for every name that supported_models lists.",
)
def every_model_known(probe: Probe, _: Case) -> None:
    """GetModelInfo succeeds for every supported model."""
    names = supported_models(probe.declared)
    if not names:
        probe.skip("supported_models is empty")
    for name in names:
        call = ask_model(probe, name)
        if not call.ending.ok:
            probe.fail(f"OK for the supported model {name!r}", describe(call), call)


@check(
    "OE-CORE-DISC-012",
    table=_unknown_name,
    strategy=_unknown_names,
    advice="Compare the name with the served names and aliases; answer NOT_FOUND for any other.",
)
def unknown_model(probe: Probe, case: Case) -> None:
    """GetModelInfo of a name that is not served gives NOT_FOUND."""
    name = case.params["model"]
    if name in supported_models(probe.declared) or name in aliases(probe.declared):
        probe.skip("the drawn name is served")
    call = ask_model(probe, name)
    if probe.declared.legacy and call.ending.ok:
        # A server of one model may take any name for it.
        probe.tolerate("NOT_FOUND for an unknown model", describe(call), call)
    probe.expect_rejected(call, grpc.StatusCode.NOT_FOUND, because="no model has this name")


@check(
    "OE-CORE-DISC-013",
    advice="Refuse an empty model name with INVALID_ARGUMENT; it does not mean a default model.",
)
def empty_model(probe: Probe, _: Case) -> None:
    """GetModelInfo without a name gives INVALID_ARGUMENT."""
    call = ask_model(probe, "")
    other_refusal = call.rejected and call.ending.code is not grpc.StatusCode.INVALID_ARGUMENT
    if probe.declared.legacy and other_refusal:
        probe.tolerate("INVALID_ARGUMENT for an empty model name", describe(call), call)
    probe.expect_rejected(
        call, grpc.StatusCode.INVALID_ARGUMENT, because="the model name is required"
    )


@check(
    "OE-CORE-DISC-014",
    table=_alias_cases,
    advice="Resolve served_model_aliases in the one place where model names are looked up, for "
    "GetModelInfo and Generate alike.",
)
def alias_resolves(probe: Probe, case: Case) -> None:
    """An alias gives the ModelInfo of its model, and Generate takes it."""
    alias = case.params.get("alias", "")
    info = probe.declared.model
    if not alias or info is None:
        probe.skip("the model has no alias")
    call = ask_model(probe, alias)
    resolved = answer(call, v1.ModelInfo)
    if resolved is None:
        probe.fail(f"OK for the alias {alias!r}", describe(call), call)
    if resolved.model_id != info.model_id:
        probe.fail(f"the model_id {info.model_id!r}", repr(resolved.model_id), call)
    if probe.declared.generates:
        _generate_by(probe, alias)


def _generate_by(probe: Probe, alias: str) -> None:
    """Generate takes the alias where it takes the served name."""
    request = simple_request(probe.declared)
    request.model = alias
    by_alias = probe.generate(Case(request))
    if by_alias.accepted:
        return
    by_name = probe.generate(Case(simple_request(probe.declared)))
    if not by_name.accepted:
        probe.skip(f"Generate refuses the served name too: {describe(by_name)}")
    probe.fail(f"Generate to take the alias {alias!r}", describe(by_alias), by_alias)
