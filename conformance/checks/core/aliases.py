"""Two names of one RPC: whatever is sent to either, both do and say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import answer
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.model.registry import default_registry
from conformance.oracle.extras import UNKNOWN_ADAPTER
from conformance.strategies.faults import UNKNOWN_MODEL
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

LIST_LORAS = ("openengine.v1.OpenEngineAdapters/ListLoras", "openengine.v1.Control/ListLoras")
# RPCs whose answer changes from call to call: only which fields are there is compared.
VOLATILE = frozenset({"GetLoad"})


def aliases(declared: Declared) -> Mapping[str, str]:
    """Full name of the RPC that each alias of the advertised profiles stands for."""
    return {
        name: rpc.alias_of
        for profile in default_registry().profiles
        if profile.name in declared.profiles
        for name, rpc in profile.methods()
        if rpc.alias_of
    }


def _requests(rpc: str, declared: Declared) -> tuple[Message, ...]:
    """What to send to both names: right requests that change nothing, and wrong ones."""
    adapter = v1.LoraAdapter(lora_id=0, lora_name="", source_path="relative")
    table: dict[str, tuple[Message, ...]] = {
        "GetModelInfo": tuple(
            v1.GetModelInfoRequest(model=name) for name in (declared.model_name, UNKNOWN_MODEL, "")
        ),
        "GetLoad": (v1.GetLoadRequest(), v1.GetLoadRequest(include_per_rank=True)),
        "GetKvEventSources": (v1.GetKvEventSourcesRequest(),),
        "SubscribeKvEvents": (v1.SubscribeKvEventsRequest(data_parallel_ranks=[2**32 - 1]),),
        "ListLoras": (v1.ListLorasRequest(),),
        "UnloadLora": tuple(v1.UnloadLoraRequest(lora_name=name) for name in (UNKNOWN_ADAPTER, "")),
        "LoadLora": (v1.LoadLoraRequest(), v1.LoadLoraRequest(adapter=adapter)),
    }
    return table.get(rpc, ())


def _pairs(declared: Declared) -> Iterable[Case]:
    return [
        Case(request, params={"alias": alias, "original": original})
        for alias, original in aliases(declared).items()
        for request in _requests(alias.partition("/")[2], declared)
    ]


@check(
    "OE-CORE-COMPAT-001",
    table=_pairs,
    advice="Register one handler under both names.",
)
def alias_is_the_same(probe: Probe, case: Case) -> None:
    """Both names give the same status and message, and leave the same state behind."""
    request = case.request
    if request is None:
        probe.skip("there is no request to send")
    ours = _call(probe, case.params["alias"], request)
    theirs = _call(probe, case.params["original"], request)
    if ours.ending.code is not theirs.ending.code:
        wanted = f"{theirs.ending.code.name} from {ours.method}, as from {theirs.method}"
        probe.fail(wanted, describe(ours), ours)
    _same_messages(probe, ours, theirs)
    if "Lora" in ours.method:
        _same_messages(probe, *(probe.call(name, v1.ListLorasRequest()) for name in LIST_LORAS))


def _call(probe: Probe, name: str, request: Message) -> Transcript:
    live = probe.start(name, request)
    live.wait_event(1, timeout=probe.pace.unary_limit())
    if name.endswith("SubscribeKvEvents"):
        live.cancel()
    return probe.finish(live)


def _same_messages(probe: Probe, ours: Transcript, theirs: Transcript) -> None:
    volatile = ours.method.partition("/")[2] in VOLATILE
    first, second = _said(ours, volatile=volatile), _said(theirs, volatile=volatile)
    if first != second:
        what = "the same fields" if volatile else "the same message"
        probe.fail(f"{what} from {ours.method} and {theirs.method}", "others", ours)


def _said(call: Transcript, *, volatile: bool) -> object:
    if volatile:
        info = answer(call, v1.LoadInfo)
        return None if info is None else frozenset(_paths(info))
    return call.messages[0] if call.messages else None


def _paths(message: Message, prefix: str = "") -> Iterator[str]:
    """Paths of the fields that are present."""
    for field, value in message.ListFields():
        path = f"{prefix}{field.name}"
        yield path
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in value if field.is_repeated else (value,):
                yield from _paths(item, f"{path}.")
