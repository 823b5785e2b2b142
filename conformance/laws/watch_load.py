"""Laws about what a load stream consists of: order, numbers, times, completeness, its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.load_stream import (
    WATCH_LOAD_ONLY,
    Pair,
    Sent,
    combined,
    of_kind,
    request_of,
    sent,
    wants_initial,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Presence without a flag: an empty text, an empty list. Attributes are outside the contract.
_LOOSE = frozenset({"attributes", "ranks"})


@law("OE-LOAD-020", methods=WATCH_LOAD_ONLY)
def settings_first(transcript: Transcript, _: Declared) -> Ruling:
    """The first response is the settings, and no other is."""
    responses = sent(transcript.events)
    if not responses:
        return None
    if responses[0].kind != "settings":
        return Finding("settings first", _named(responses[0]), 0)
    for each in responses[1:]:
        if each.kind == "settings":
            return Finding("settings only once", "settings again", each.event)
    return True


@law("OE-LOAD-021", methods=WATCH_LOAD_ONLY)
def initial_snapshot(transcript: Transcript, _: Declared) -> Ruling:
    """Where it is wanted, an initial snapshot follows the settings; no later one is initial."""
    request = request_of(transcript)
    responses = sent(transcript.events)
    if request is None or not wants_initial(request) or len(responses) < 2:
        return None
    second = responses[1]
    if second.kind == "error":
        return None
    if second.kind != "snapshot":
        return Finding("a snapshot after the settings", _named(second), 1)
    if not second.response.snapshot.initial:
        return Finding("initial = true on the first snapshot", "initial = false", 1)
    for each in of_kind(responses[2:], "snapshot"):
        if each.response.snapshot.initial:
            return Finding("initial = true on the first snapshot only", "it again", each.event)
    return True


@law("OE-LOAD-022", methods=WATCH_LOAD_ONLY)
def no_initial_snapshot(transcript: Transcript, _: Declared) -> Ruling:
    """Where no initial snapshot is wanted, none is marked as one."""
    request = request_of(transcript)
    if request is None or wants_initial(request):
        return None
    snapshots = of_kind(sent(transcript.events), "snapshot")
    for each in snapshots:
        if each.response.snapshot.initial:
            return Finding("initial = false: none was asked for", "initial = true", each.event)
    return True if snapshots else None


@law("OE-LOAD-029", methods=WATCH_LOAD_ONLY)
def numbers_increase(transcript: Transcript, _: Declared) -> Ruling:
    """The settings have number 1, and numbers only grow."""
    responses = sent(transcript.events)
    for each in of_kind(responses, "settings")[:1]:
        if each.response.sequence_number != 1:
            actual = f"sequence_number {each.response.sequence_number}"
            return Finding("sequence_number 1 on the settings", actual, each.event)
    for before, after in pairwise(responses):
        one, two = before.response.sequence_number, after.response.sequence_number
        if two <= one:
            return Finding(f"a sequence_number above {one}", str(two), after.event)
    return True if responses else None


@law("OE-LOAD-030", methods=WATCH_LOAD_ONLY)
def loss_is_told(transcript: Transcript, _: Declared) -> Ruling:
    """coalesced_events is the gap in the numbers, less one, and 0 on the settings."""
    responses = sent(transcript.events)
    for each in of_kind(responses, "settings"):
        if each.response.coalesced_events:
            actual = str(each.response.coalesced_events)
            return Finding("coalesced_events 0 on the settings", actual, each.event)
    for before, after in pairwise(responses):
        gap = after.response.sequence_number - before.response.sequence_number - 1
        if gap >= 0 and after.response.coalesced_events != gap:
            actual = str(after.response.coalesced_events)
            return Finding(f"coalesced_events {gap}", actual, after.event)
    return True if len(responses) > 1 else None


@law("OE-LOAD-031", methods=WATCH_LOAD_ONLY)
def time_goes_on(transcript: Transcript, _: Declared) -> Ruling:
    """No time on the stream goes back, and no load was measured after it was sent."""
    responses = sent(transcript.events)
    rulings: list[Ruling] = [True] if responses else []
    for before, after in pairwise(responses):
        if (back := -after.ms_after(before)) > 0:
            rulings.append(
                Finding("timestamps that never decrease", f"back by {back:.3f} ms", after.event)
            )
    rulings.extend(_load_times(of_kind(responses, "snapshot")))
    return combined(rulings)


def _load_times(snapshots: tuple[Sent, ...]) -> Iterator[Ruling]:
    timed = [s for s in snapshots if s.response.snapshot.load.HasField("timestamp_unix_nanos")]
    for each in timed:
        if _measured(each) > each.response.timestamp_unix_nanos:
            yield Finding(
                "a load measured before its response was made",
                f"{_measured(each) - each.response.timestamp_unix_nanos} ns after it",
                each.event,
            )
    for before, after in pairwise(timed):
        if (back := _measured(before) - _measured(after)) > 0:
            yield Finding("a load that is never older", f"older by {back} ns", after.event)


def _measured(snapshot: Sent) -> int:
    return snapshot.response.snapshot.load.timestamp_unix_nanos


@law("OE-LOAD-032", methods=WATCH_LOAD_ONLY)
def snapshots_are_complete(transcript: Transcript, _: Declared) -> Ruling:
    """A snapshot has every field and rank that the first one of its pair had."""
    first: dict[Pair, frozenset[str]] = {}
    snapshots = of_kind(sent(transcript.events), "snapshot")
    for each in snapshots:
        if not each.response.snapshot.HasField("load"):
            return Finding("the load in every snapshot", "a snapshot without it", each.event)
        fields = present(each.response.snapshot.load)
        if lost := first.setdefault(each.pair, fields) - fields:
            return Finding("every field of the first snapshot", _without(lost), each.event)
    return True if len(snapshots) > 1 else None


def present(load: v1.LoadInfo) -> frozenset[str]:
    """What a LoadInfo holds: `running_requests`, and `rank 3 running_requests` for ranks."""
    fields = {field.name for field, _ in load.ListFields() if field.name not in _LOOSE}
    for rank in load.ranks:
        number = rank.data_parallel_rank
        fields |= {f"rank {number} {field.name}" for field, _ in rank.ListFields()}
    return frozenset(fields)


def _without(fields: frozenset[str]) -> str:
    return f"no {', '.join(sorted(fields)[:3])}"


@law("OE-LOAD-035", methods=WATCH_LOAD_ONLY)
def heartbeat_names_snapshot(transcript: Transcript, _: Declared) -> Ruling:
    """A heartbeat gives the number of the last snapshot before it, 0 when there was none."""
    last, judged = 0, False
    for each in sent(transcript.events):
        if each.kind == "snapshot":
            last = each.response.sequence_number
        elif each.kind == "heartbeat":
            judged = True
            named = each.response.heartbeat.last_snapshot_sequence_number
            if named != last:
                return Finding(f"last_snapshot_sequence_number {last}", str(named), each.event)
    return True if judged else None


@law("OE-LOAD-046", methods=WATCH_LOAD_ONLY)
def pair_never_decreases(transcript: Transcript, _: Declared) -> Ruling:
    """Epoch and revision, ordered together, only grow on a stream."""
    responses = sent(transcript.events)
    for before, after in pairwise(responses):
        if after.pair < before.pair:
            return Finding(f"(epoch, revision) from {before.pair} on", str(after.pair), after.event)
    return True if len(responses) > 1 else None


@law("OE-LOAD-047", methods=WATCH_LOAD_ONLY)
def failure_ends_stream(transcript: Transcript, _: Declared) -> Ruling:
    """An EngineError is the last response, and the status after it is OK."""
    responses = sent(transcript.events)
    for each in of_kind(responses, "error")[:1]:
        if each is not responses[-1]:
            return Finding("nothing after an EngineError", "more responses", each.event + 1)
        if transcript.undisturbed and not transcript.ending.ok:
            return Finding("OK after an EngineError", transcript.ending.code.name)
        return True
    return None


def _named(each: Sent) -> str:
    return f"a {each.kind}" if each.kind else "a response without event"


LAWS = (
    settings_first,
    initial_snapshot,
    no_initial_snapshot,
    numbers_increase,
    loss_is_told,
    time_goes_on,
    snapshots_are_complete,
    heartbeat_names_snapshot,
    pair_never_decreases,
    failure_ends_stream,
)
