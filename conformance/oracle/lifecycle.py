"""A model of request ids over a history of starts, aborts and cancellations: which answers are
right, and which rule a wrong one breaks.

The model is told what was seen, in order, by whoever acts on the engine. It keeps for each id
whether a request surely runs under it, and for each such request the rules about actions that were
none of its business: when it ends all the same, and they are of one rule, that rule is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

ABORTED, ALREADY_FINISHED, NOT_FOUND = "ABORTED", "ALREADY_FINISHED", "NOT_FOUND"
ABORT_ANSWERS = frozenset({ABORTED, ALREADY_FINISHED, NOT_FOUND})

UNSEEN_ID = "OE-CORE-ABORT-002"
ABORT_ACTIVE = "OE-CORE-ABORT-003"
ABORT_FINISHED = "OE-CORE-ABORT-004"
ABORT_ENDS = "OE-CORE-ABORT-005"
ABORT_AGAIN = "OE-CORE-ABORT-008"
ABORT_EVERYTHING = "OE-CORE-ABORT-009"
ABORT_LATER = "OE-CORE-ABORT-010"
ABORT_RELEASES = "OE-CORE-ABORT-012"
CANCEL_RELEASES = "OE-CORE-CANCEL-001"
CANCEL_ALONE = "OE-CORE-CANCEL-002"
DUPLICATE = "OE-CORE-GEN-003"
REUSE = "OE-CORE-GEN-004"
LOAD_COUNTS = "OE-LOAD-009"
BUSY_SERVES = "OE-CORE-HEALTH-020"


class Phase(StrEnum):
    """What is known of the id."""

    FREE = "free"  # no request has it
    RUNNING = "running"  # its request has begun and is far from its end
    LEAVING = "leaving"  # its request was aborted or cancelled, and may not be gone yet


class End(StrEnum):
    """How the last request of an id ended."""

    NONE = "none"
    ITSELF = "itself"
    ABORT = "abort"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Breach:
    """A requirement that was broken, in the words of a report."""

    requirement: str
    expected: str
    actual: str


@dataclass(slots=True)
class Slot:
    """One id. foreign: the rules about actions so far that must not touch its request.
    duplicated: whether a duplicate of the running request was sent.
    """

    phase: Phase = Phase.FREE
    end: End = End.NONE
    foreign: set[str] = field(default_factory=set)
    duplicated: bool = False


@dataclass(slots=True)
class Lifecycle:
    """The ids of one history, by slot number. remembers: whether the engine must still know every
    finished id of it. released: the rules about actions that gave something back since the load
    was last right.
    swept: whether everything was aborted at some time.
    """

    remembers: bool
    slots: dict[int, Slot] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    swept: bool = False

    def slot(self, number: int) -> Slot:
        """The state of a slot; a new one is free and was never used."""
        return self.slots.setdefault(number, Slot())

    def running(self) -> Iterator[int]:
        """Slots whose request surely runs."""
        return (number for number, slot in self.slots.items() if slot.phase is Phase.RUNNING)

    # What happened

    def begun(self, number: int) -> None:
        """A request under the id has begun: its first message came."""
        old = self.slot(number)
        foreign = {End.ABORT: {ABORT_AGAIN}, End.CANCEL: {CANCEL_ALONE}}.get(old.end, set())
        if self.swept:
            foreign = foreign | {ABORT_LATER}
        self.slots[number] = Slot(Phase.RUNNING, old.end, set(foreign))

    def duplicate(self, number: int, answer: str) -> Breach | None:
        """A second request was sent under a running id. answer: a gRPC status, or ACCEPTED."""
        slot = self.slot(number)
        slot.duplicated = True
        slot.foreign.add(DUPLICATE)
        if answer == "ALREADY_EXISTS":
            return None
        return Breach(DUPLICATE, "ALREADY_EXISTS for the duplicate", answer)

    def aborted(self, number: int, answer: str) -> Breach | None:
        """Abort of the id answered with an AbortStatus, NOT_FOUND or another gRPC status. A
        request that runs was still running, far from its end, when the answer had come.
        """
        slot = self.slot(number)
        self._foreign_to_others(number, ABORT_AGAIN)
        breach = self._judged_abort(slot, answer)
        if slot.phase is Phase.RUNNING and breach is None:
            self._leaves(slot, End.ABORT)
        return breach

    def aborted_all(self, answer: str) -> Breach | None:
        """Abort of everything answered; requests that ran did so until then."""
        running = [self.slots[number] for number in self.running()]
        leaving = any(slot.phase is Phase.LEAVING for slot in self.slots.values())
        allowed = {ABORTED} if running else {ALREADY_FINISHED}
        allowed |= {ABORTED, ALREADY_FINISHED} if leaving and not running else set()
        for slot in running:
            self._leaves(slot, End.ABORT)
        self.swept = True
        if answer in allowed:
            return None
        count = len(running)
        expected = f"{' or '.join(sorted(allowed))} with {count} active requests"
        return Breach(ABORT_EVERYTHING, expected, answer)

    def cancelled(self, number: int) -> None:
        """The client cancelled the running request of the id."""
        self._foreign_to_others(number, CANCEL_ALONE)
        self._leaves(self.slot(number), End.CANCEL)

    def ended(self, number: int) -> None:
        """The stream of a request that left, or that was short, has ended."""
        slot = self.slot(number)
        end = slot.end if slot.phase is Phase.LEAVING else End.ITSELF
        self.slots[number] = Slot(Phase.FREE, end)

    # What was seen and must not be

    def lost(self, number: int, how: str) -> Breach | None:
        """A running request ended though nobody ended it; None when no action explains it, or
        actions that different rules are about do.
        """
        rules = self.slot(number).foreign
        self.slots[number] = Slot(Phase.FREE, End.ITSELF)
        if len(rules) != 1:
            return None
        return Breach(next(iter(rules)), "a request to go on that nobody ended", how)

    def taken(self, number: int, seconds: float) -> Breach:
        """The id of a free or leaving slot was refused as a duplicate for so long."""
        slot = self.slot(number)
        rule = CANCEL_RELEASES if slot.end is End.CANCEL else REUSE
        return Breach(rule, "the id free again", f"ALREADY_EXISTS for {seconds:g} s")

    def still_open(self, seconds: float) -> Breach:
        """The stream of an aborted request did not end for so long."""
        return Breach(ABORT_ENDS, "the end of the aborted stream", f"open after {seconds:.1f} s")

    def load(self, seen: int) -> Breach | None:
        """running_requests, when all that left has had its time to go. None also for too many of
        them after actions that different rules are about.
        """
        due = sum(1 for _ in self.running())
        rules = self.released if seen > due else {LOAD_COUNTS}
        if seen == due:
            self.released = set()
        if seen == due or len(rules) != 1:
            return None
        return Breach(next(iter(rules)), f"running_requests {due}", f"{seen}")

    def health(self, status: str) -> Breach | None:
        """The standard health status of the data plane."""
        return None if status == "SERVING" else Breach(BUSY_SERVES, "SERVING", status)

    def _judged_abort(self, slot: Slot, answer: str) -> Breach | None:
        if slot.phase is Phase.RUNNING:
            rule = DUPLICATE if slot.duplicated else ABORT_ACTIVE
            return _unless(answer, {ABORTED}, rule, "of an active request")
        if slot.phase is Phase.LEAVING or slot.end in {End.ABORT, End.CANCEL}:
            return _unless(answer, ABORT_ANSWERS, ABORT_AGAIN, "of a request that was ended")
        gone = {NOT_FOUND, ALREADY_FINISHED}
        if slot.end is End.NONE:
            allowed = {NOT_FOUND} if self.remembers else gone
            return _unless(answer, allowed, UNSEEN_ID, "of an id that was never used")
        allowed = {ALREADY_FINISHED} if self.remembers else gone
        return _unless(answer, allowed, ABORT_FINISHED, "of a finished request")

    def _leaves(self, slot: Slot, end: End) -> None:
        slot.phase, slot.end = Phase.LEAVING, end
        self.released.add(ABORT_RELEASES if end is End.ABORT else CANCEL_RELEASES)

    def _foreign_to_others(self, number: int, rule: str) -> None:
        for other in self.running():
            if other != number:
                self.slots[other].foreign.add(rule)


def _unless(answer: str, allowed: set[str] | frozenset[str], rule: str, what: str) -> Breach | None:
    if answer in allowed:
        return None
    return Breach(rule, f"{' or '.join(sorted(allowed))} for Abort {what}", answer)
