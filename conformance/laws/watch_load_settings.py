"""Laws about the settings of a load stream: which intervals a wish is granted."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.load_stream import (
    WATCH_LOAD_ONLY,
    bounds_of,
    combined,
    declared_pair,
    of_kind,
    request_of,
    sent,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1


@dataclass(frozen=True, slots=True)
class Interval:
    """One of the two intervals, in milliseconds: what was wished (None = nothing) and granted.

    raised_to: below it the interval may not be, because the other one is that long.
    """

    name: str
    wish: int | None
    granted: int
    clamped: bool
    floor: int
    default: int
    ceiling: int
    raised_to: int = 0

    @property
    def nearest(self) -> int:
        """The nearest interval to the wish within the bounds; the default without a wish."""
        if self.wish is None:
            return self.default
        return min(max(self.wish, self.floor), self.ceiling)

    @property
    def outside(self) -> bool:
        """Whether a wish lies outside the bounds; zero has a meaning of its own."""
        return bool(self.wish) and self.wish != self.nearest

    @property
    def raised(self) -> bool:
        """Whether the other interval makes this one longer than the wish alone would."""
        return self.nearest < self.raised_to

    def expect(self, value: int, clamped: bool | None = None) -> Ruling:
        """Whether this was granted, with this flag unless it is None."""
        flag = "" if clamped is None else f", clamped = {str(clamped).lower()}"
        if self.granted == value and clamped in (None, self.clamped):
            return True
        actual = f"{self.granted}, clamped = {str(self.clamped).lower()}"
        return Finding(f"effective {self.name} {value}{flag}", actual, 0)


@dataclass(frozen=True, slots=True)
class Grant:
    """The two intervals of one stream. can_be_disabled: whether heartbeats can be turned off."""

    min_interval: Interval
    heartbeat: Interval
    can_be_disabled: bool

    @property
    def both(self) -> tuple[Interval, Interval]:
        return self.min_interval, self.heartbeat

    @property
    def disabled(self) -> bool:
        """Whether the client asked for no heartbeats."""
        return self.heartbeat.wish == 0


def grant_of(transcript: Transcript, declared: Declared) -> Grant | None:
    """What was wished and granted; None without a request, settings at the start, sane bounds, or
    when the capabilities have changed since they were read.
    """
    request, bounds = request_of(transcript), bounds_of(declared)
    responses = sent(transcript.events)
    if request is None or bounds is None or not responses or responses[0].kind != "settings":
        return None
    if responses[0].pair != declared_pair(declared):
        return None
    settings = responses[0].response.settings
    disable = bounds.heartbeat_can_be_disabled or not bounds.HasField("heartbeat_can_be_disabled")
    return Grant(_snapshots(request, settings, bounds), _beats(request, settings, bounds), disable)


def _snapshots(
    request: v1.WatchLoadRequest, settings: v1.WatchLoadSettings, bounds: v1.LoadCapabilities
) -> Interval:
    return Interval(
        "min_interval_ms",
        request.min_interval_ms if request.HasField("min_interval_ms") else None,
        settings.effective_min_interval_ms,
        settings.min_interval_clamped,
        bounds.min_interval_floor_ms,
        bounds.min_interval_default_ms,
        bounds.min_interval_ceiling_ms,
    )


def _beats(
    request: v1.WatchLoadRequest, settings: v1.WatchLoadSettings, bounds: v1.LoadCapabilities
) -> Interval:
    return Interval(
        "heartbeat_interval_ms",
        request.heartbeat_interval_ms if request.HasField("heartbeat_interval_ms") else None,
        settings.effective_heartbeat_interval_ms,
        settings.heartbeat_interval_clamped,
        bounds.heartbeat_floor_ms,
        bounds.heartbeat_default_ms,
        bounds.heartbeat_ceiling_ms,
        settings.effective_min_interval_ms,
    )


@law("OE-LOAD-023", methods=WATCH_LOAD_ONLY)
def defaults(transcript: Transcript, declared: Declared) -> Ruling:
    """Without a wish the advertised default is granted."""
    grant = grant_of(transcript, declared)
    if grant is None:
        return None
    return combined(
        each.expect(each.default) for each in grant.both if each.wish is None and not each.raised
    )


@law("OE-LOAD-024", methods=WATCH_LOAD_ONLY)
def zero_is_the_floor(transcript: Transcript, declared: Declared) -> Ruling:
    """A min_interval_ms of zero is granted as the floor, which is no clamping."""
    grant = grant_of(transcript, declared)
    if grant is None or grant.min_interval.wish != 0:
        return None
    return grant.min_interval.expect(grant.min_interval.floor, clamped=False)


@law("OE-LOAD-025", methods=WATCH_LOAD_ONLY)
def zero_is_silence(transcript: Transcript, declared: Declared) -> Ruling:
    """A heartbeat_interval_ms of zero turns heartbeats off, or is the ceiling where it cannot."""
    grant = grant_of(transcript, declared)
    if grant is None or not grant.disabled:
        return None
    if not grant.can_be_disabled:
        longest = max(grant.heartbeat.ceiling, grant.heartbeat.raised_to)
        return grant.heartbeat.expect(longest, clamped=True)
    for beat in of_kind(sent(transcript.events), "heartbeat"):
        return Finding("no heartbeat: they are turned off", "a heartbeat", beat.event)
    return grant.heartbeat.expect(0)


@law("OE-LOAD-026", methods=WATCH_LOAD_ONLY)
def outside_is_clamped(transcript: Transcript, declared: Declared) -> Ruling:
    """A wish outside the bounds is granted as the nearest bound, with the flag."""
    grant = grant_of(transcript, declared)
    if grant is None:
        return None
    return combined(
        each.expect(each.nearest, clamped=True)
        for each in grant.both
        if each.outside and not each.raised
    )


@law("OE-LOAD-027", methods=WATCH_LOAD_ONLY)
def inside_is_granted(transcript: Transcript, declared: Declared) -> Ruling:
    """A wish inside the bounds is granted as it is, without the flag."""
    grant = grant_of(transcript, declared)
    if grant is None:
        return None
    return combined(
        each.expect(each.nearest, clamped=False)
        for each in grant.both
        if each.wish and not each.outside and not each.raised
    )


@law("OE-LOAD-028", methods=WATCH_LOAD_ONLY)
def heartbeat_is_not_shorter(transcript: Transcript, declared: Declared) -> Ruling:
    """Heartbeats are not closer than snapshots: a shorter interval is raised, with the flag."""
    grant = grant_of(transcript, declared)
    if grant is None or (grant.disabled and grant.can_be_disabled):
        return None
    beats = grant.heartbeat
    if not grant.disabled and beats.raised:
        return beats.expect(beats.raised_to, clamped=True)
    if beats.granted < beats.raised_to:
        return Finding(f"at least {beats.raised_to} between heartbeats", str(beats.granted), 0)
    return True


LAWS = (
    defaults,
    zero_is_the_floor,
    zero_is_silence,
    outside_is_clamped,
    inside_is_granted,
    heartbeat_is_not_shorter,
)
