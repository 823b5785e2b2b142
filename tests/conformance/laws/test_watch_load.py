"""Laws about load streams, on streams made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.laws import laws_of
from conformance.laws.load_stream import NANOS_PER_MS, WATCH_LOAD
from conformance.wire.transcript import Action, ActionKind, Ending, Origin
from oe_wire import v1
from tests.conformance.laws.watch import (
    BEAT_FLOOR,
    CEILING,
    FLOOR,
    Stream,
    broken,
    failure,
    fast_request,
    heartbeat,
    kept,
    rulings,
    snapshot,
    usual,
)
from tests.conformance.laws.watch import settings as granted

OK = Ending(9.0, grpc.StatusCode.OK, "", Origin.REMOTE)
INTERNAL = Ending(9.0, grpc.StatusCode.INTERNAL, "", Origin.REMOTE)


def _failed() -> Stream:
    stream = usual().put(failure(), 1100)
    stream.end, stream.cancelled = OK, None
    return stream


def _without_initial() -> Stream:
    request = fast_request()
    request.initial_snapshot = False
    stream = Stream(request).put(granted(), 0)
    return stream.put(heartbeat(), 500).put(snapshot(1), 600).put(heartbeat(), 1100)


@dataclass(frozen=True)
class Change:
    """One thing that is wrong on a stream, and the rows that it breaks."""

    name: str
    rows: str
    change: Callable[[Stream], object]
    stream: Callable[[], Stream] = usual


def _at(position: int, **fields: int) -> Callable[[Stream], None]:
    def change(stream: Stream) -> None:
        for name, value in fields.items():
            setattr(stream.responses[position], name, value)

    return change


def _later(position: int, ms: int) -> Callable[[Stream], None]:
    """The response and all after it come later, with what they hold."""

    def change(stream: Stream) -> None:
        for response in stream.responses[position:]:
            response.timestamp_unix_nanos += ms * NANOS_PER_MS
            if response.HasField("snapshot"):
                response.snapshot.load.timestamp_unix_nanos += ms * NANOS_PER_MS

    return change


def _settings_again(stream: Stream) -> None:
    stream.put(granted(), 1060)


def _settings_late(stream: Stream) -> None:
    first, second = stream.responses[:2]
    first.sequence_number, second.sequence_number = 1, 2
    kinds = first.settings, second.snapshot
    one, two = v1.WatchLoadSettings(), v1.LoadSnapshot()
    one.CopyFrom(kinds[0])
    two.CopyFrom(kinds[1])
    first.snapshot.CopyFrom(two)
    second.settings.CopyFrom(one)


def _not_initial(stream: Stream) -> None:
    stream.responses[1].snapshot.initial = False


def _always_initial(stream: Stream) -> None:
    stream.responses[2].snapshot.initial = True


def _initial_unasked(stream: Stream) -> None:
    stream.responses[2].snapshot.initial = True


def _measured_later(stream: Stream) -> None:
    stream.responses[2].snapshot.load.timestamp_unix_nanos += 1


def _measured_earlier(stream: Stream) -> None:
    stream.responses[3].snapshot.load.timestamp_unix_nanos -= 100 * NANOS_PER_MS


def _field_lost(stream: Stream) -> None:
    stream.responses[3].snapshot.load.ClearField("queued_requests")


def _rank_lost(stream: Stream) -> None:
    del stream.responses[3].snapshot.load.ranks[:]


def _load_lost(stream: Stream) -> None:
    stream.responses[3].snapshot.ClearField("load")


def _repeats(stream: Stream) -> None:
    for step in range(3):
        stream.put(snapshot(7), 1060 + 20 * step)


def _names_other(stream: Stream) -> None:
    stream.responses[-1].heartbeat.last_snapshot_sequence_number = 3


def _ends_badly(stream: Stream) -> None:
    stream.end = INTERNAL


def _silent_end(stream: Stream) -> None:
    stream.cancelled = 1.042 + 0.5 + 0.5 + 1.1


CHANGES = [
    Change("settings again", "020", _settings_again),
    Change("settings second", "020 021 029", _settings_late),
    Change("first snapshot not initial", "021", _not_initial),
    Change("every snapshot initial", "021", _always_initial),
    Change("initial unasked", "022", _initial_unasked, _without_initial),
    Change("from zero", "029 030", _at(0, sequence_number=0)),
    Change("number twice", "029 030", _at(1, sequence_number=1)),
    Change("loss on settings", "030", _at(0, coalesced_events=1)),
    Change("loss untold", "030", _at(3, coalesced_events=0)),
    Change("loss made up", "030", _at(4, coalesced_events=2)),
    Change("time goes back", "031", _later(2, -13)),
    Change("measured after sending", "031", _measured_later),
    Change("older load", "031", _measured_earlier),
    Change("field lost", "032", _field_lost),
    Change("rank lost", "032", _rank_lost),
    Change("load lost", "032", _load_lost),
    Change("snapshots close", "033", _later(2, -6)),
    Change("silence", "034", _later(4, 1600)),
    Change("silent end", "034", _silent_end),
    Change("other snapshot named", "035", _names_other),
    Change("early heartbeat", "036", _later(5, -60)),
    Change("older pair", "046", _at(0, capability_revision=2)),
    Change("something after the error", "047", lambda s: s.put(heartbeat(), 1601), _failed),
    Change("status after the error", "047", _ends_badly, _failed),
    Change("same again and again", "048", _repeats),
]


@pytest.mark.parametrize("make", [usual, _failed, _without_initial])
def test_right_streams_break_nothing(make: Callable[[], Stream]) -> None:
    """No law finds anything on a right stream."""
    assert not broken(make().call())


def test_every_law_judges_some_right_stream() -> None:
    """None is silent on all of them; those about settings have tests of their own."""
    seen = kept(usual().call()) | kept(_failed().call()) | kept(_without_initial().call())
    of_settings = {"023", "025", "026"}
    assert seen | of_settings == set(rulings(usual().call()))
    assert {f"OE-LOAD-{row}" for row in rulings(usual().call())} <= laws_of(WATCH_LOAD)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_one_fault_breaks_its_own_rows(change: Change) -> None:
    """A fault is found by its law and by no unrelated one."""
    stream = change.stream()
    change.change(stream)
    assert broken(stream.call()) == set(change.rows.split())


def test_every_law_has_a_fault() -> None:
    """No law about the stream itself is without a stream that breaks it."""
    meant = {change.rows.split()[0] for change in CHANGES} | {"029"}
    assert meant == set(rulings(usual().call())) - {"023", "024", "025", "026", "027", "028"}


def test_other_pairs_may_have_other_fields() -> None:
    """What a snapshot holds is compared only under the same capabilities."""
    stream = usual()
    for response in stream.responses[3:]:
        response.capability_revision = 2
    _field_lost(stream)
    assert not broken(stream.call())


def test_silence_of_a_slow_reader_is_not_judged() -> None:
    """Events that were replaced would have come in time."""
    stream = usual().put(snapshot(3), 9000, lost=4)
    assert not broken(stream.call())


def test_silence_of_a_stalled_reader_is_not_judged() -> None:
    """What waits on the wire was not missing."""
    stream = usual()
    _silent_end(stream)
    call = stream.call()
    stalled = replace(call, actions=(Action(0.5, ActionKind.STALL), *call.actions))
    assert broken(call) == {"034"}
    assert not broken(stalled)


def test_silence_before_an_end_by_the_engine_is_not_judged() -> None:
    """Only the client's own end tells how long it waited."""
    stream = _failed()
    stream.end = Ending(60.0, grpc.StatusCode.OK, "", Origin.REMOTE)
    assert not broken(stream.call())


def test_no_heartbeats_no_silence() -> None:
    """With heartbeats off a stream may be silent for ever, and repeat itself."""
    stream = Stream(v1.WatchLoadRequest(heartbeat_interval_ms=0)).put(granted(100, 0), 0)
    stream.put(snapshot(initial=True), 0).put(snapshot(), 200).put(snapshot(), 300)
    stream.cancelled = 100.0
    assert not broken(stream.call())
    assert not {"034", "036", "048"} & kept(stream.call())


def test_refused_stream_is_not_judged() -> None:
    """Without a response no law has anything to say."""
    stream = Stream(fast_request())
    stream.end, stream.cancelled = INTERNAL, None
    assert not any(rulings(stream.call()).values())


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """What a right engine may send: changes at any time an interval apart, some replaced, and
    heartbeats after silences.
    """
    stream = Stream(fast_request()).put(granted(), 0).put(snapshot(0, initial=True), 0)
    now = last_snapshot = 0.0
    for number in range(draw(st.integers(0, 12))):
        gap = draw(st.floats(0, 2 * BEAT_FLOOR))
        if gap >= BEAT_FLOOR:
            now += BEAT_FLOOR
            stream.put(heartbeat(), now)
            continue
        now = max(now + gap, last_snapshot + FLOOR)
        last_snapshot = now
        stream.put(snapshot(number + 1), now, lost=draw(st.integers(0, 3)))
    stream.cancelled = now / 1000 + draw(st.floats(0, CEILING / 1000))
    return stream


@settings(max_examples=60, deadline=None, database=None)
@given(streams())
def test_any_right_stream_breaks_nothing(stream: Stream) -> None:
    """The laws agree with every stream that a right engine may send."""
    assert not broken(stream.call())
