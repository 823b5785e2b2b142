"""The slot of a load stream against a model: whatever the reader does, loss is counted exactly."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from oe_wire import v1
from reference_engine.server.load_slot import LoadSlot, Moment


class SlotMachine(RuleBasedStateMachine):
    """A producer and a reader in any order. The model is the list of all that was produced."""

    @initialize(initial=st.booleans())
    def open(self, initial):
        self.initial = initial
        self.produced = ["settings"]
        self.responses = []
        granted = v1.WatchLoadSettings(initial_snapshot=initial)
        self.slot = LoadSlot("i", granted, self.moment())

    def moment(self):
        return Moment(1000 + len(self.produced), 1, len(self.produced))

    def produce(self, kind):
        self.produced.append(kind)
        return self.moment()

    @precondition(lambda self: "error" not in self.produced)
    @rule()
    def snapshot(self):
        moment = self.produce("snapshot")
        self.slot.put_snapshot(v1.LoadInfo(running_requests=len(self.produced)), moment)

    @precondition(lambda self: self.slot.empty and "error" not in self.produced)
    @rule()
    def heartbeat(self):
        self.slot.put_heartbeat(self.produce("heartbeat"))

    @precondition(lambda self: "error" not in self.produced)
    @rule()
    def fail(self):
        self.slot.put_error(v1.EngineError(message="x"), self.produce("error"))

    @precondition(lambda self: not self.slot.empty)
    @rule()
    def take(self):
        newest = max(at for at, kind in enumerate(self.produced) if kind != "error")
        before = self.responses[-1].sequence_number if self.responses else 0
        response = self.slot.take()
        self.responses.append(response)
        kind = response.WhichOneof("event")
        number = response.sequence_number
        assert self.produced[number - 1] == kind
        assert response.coalesced_events == number - before - 1
        assert "settings" not in self.produced[before : number - 1]
        if kind in ("snapshot", "heartbeat"):
            assert number == newest + 1
        if kind == "snapshot":
            assert response.snapshot.load.running_requests == number
            delivered = [one for one in self.responses if one.HasField("snapshot")]
            assert response.snapshot.initial is (self.initial and len(delivered) == 1)
        if kind == "heartbeat":
            snapshots = [one.sequence_number for one in self.responses if one.HasField("snapshot")]
            assert response.heartbeat.last_snapshot_sequence_number == max(snapshots, default=0)
        assert response.timestamp_unix_nanos == 1000 + number
        assert response.instance_id == "i"

    @precondition(lambda self: self.slot.ended and self.slot.empty)
    @rule()
    def take_beyond_the_end(self):
        with pytest.raises(LookupError):
            self.slot.take()

    @invariant()
    def at_most_three_wait(self):
        """Settings, one more and the error: it cannot hold what a reader leaves to lie."""
        held = (self.slot._settings, self.slot._newest, self.slot._error)
        assert self.slot.empty == (not any(held))
        assert self.slot.ended == ("error" in self.produced)

    def teardown(self):
        if not hasattr(self, "slot"):
            return
        while not self.slot.empty:
            self.take()
        assert self.responses[0].HasField("settings")
        assert self.responses[-1].sequence_number == len(self.produced)
        lost = sum(response.coalesced_events for response in self.responses)
        assert lost + len(self.responses) == len(self.produced)


TestSlot = SlotMachine.TestCase
TestSlot.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


def test_an_empty_slot_gives_nothing():
    """Taking from it is a mistake of the caller's."""
    slot = LoadSlot("i", v1.WatchLoadSettings(), Moment(1, 1, 1))
    slot.take()
    with pytest.raises(LookupError):
        slot.take()
