"""Laws about the pace of a load stream: how close its responses may come, and how far apart.

Distances between responses are taken from the engine's own timestamps, so that the load of this
machine or of the network decides nothing; only a silence at the end is measured here.
"""

from __future__ import annotations

from itertools import pairwise

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.load_stream import WATCH_LOAD_ONLY, Sent, of_kind, sent, settings_of
from conformance.wire.declared import Declared
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1

SNAPSHOT_SLACK_MS = 1
# A silence may be this much longer than the interval: the larger of the two.
SILENCE_SLACK_MS = 500
SILENCE_SLACK_SHARE = 0.5
# An engine, or this client, may be kept from running for that long on a crowded machine.
MACHINE_SLACK_MS = 1000
# A heartbeat may come this much before the interval is over.
HEARTBEAT_SLACK_SHARE = 0.1


def longest_silence(settings: v1.WatchLoadSettings) -> float:
    """Milliseconds that a stream may be silent; settings with heartbeats on."""
    interval = settings.effective_heartbeat_interval_ms
    return interval + max(SILENCE_SLACK_MS, SILENCE_SLACK_SHARE * interval) + MACHINE_SLACK_MS


@law("OE-LOAD-033", methods=WATCH_LOAD_ONLY)
def snapshots_apart(transcript: Transcript, _: Declared) -> Ruling:
    """Two snapshots are at least the granted interval apart."""
    responses = sent(transcript.events)
    settings = settings_of(responses)
    snapshots = of_kind(responses, "snapshot")
    if settings is None or len(snapshots) < 2:
        return None
    interval = settings.effective_min_interval_ms
    for before, after in pairwise(snapshots):
        gap = after.ms_after(before)
        if 0 <= gap < interval - SNAPSHOT_SLACK_MS:
            return Finding(f"{interval} ms between snapshots", f"{gap:.1f} ms", after.event)
    return True


@law("OE-LOAD-034", methods=WATCH_LOAD_ONLY)
def never_silent(transcript: Transcript, _: Declared) -> Ruling:
    """No silence is longer than the heartbeat interval and its slack.

    Not judged where the reader was slow: it stalled, or events were replaced by newer ones.
    """
    responses = sent(transcript.events)
    settings = settings_of(responses)
    if settings is None or not settings.effective_heartbeat_interval_ms:
        return None
    if transcript.acted(ActionKind.STALL):
        return None
    most = longest_silence(settings)
    expected = f"a response at least every {settings.effective_heartbeat_interval_ms} ms"
    for before, after in pairwise(responses):
        gap = after.ms_after(before)
        if gap > most and not after.response.coalesced_events:
            return Finding(expected, f"silence for {gap:.0f} ms", after.event)
    tail = _tail(transcript, responses[-1])
    if tail is not None and tail > most:
        return Finding(expected, f"silence for {tail:.0f} ms until the end", responses[-1].event)
    return True if len(responses) > 1 else None


def _tail(transcript: Transcript, last: Sent) -> float | None:
    """Milliseconds between the last response and the end that the client made; None when it did
    not make the end.
    """
    ends = [a.seconds for a in transcript.actions if a.kind is not ActionKind.ABORT]
    return 1000 * (ends[0] - last.seconds) if ends else None


@law("OE-LOAD-036", methods=WATCH_LOAD_ONLY)
def heartbeats_after_silence(transcript: Transcript, _: Declared) -> Ruling:
    """A heartbeat comes only after the granted interval without any other response."""
    responses = sent(transcript.events)
    settings = settings_of(responses)
    if settings is None or not settings.effective_heartbeat_interval_ms:
        return None
    interval = settings.effective_heartbeat_interval_ms
    for before, after in pairwise(responses):
        gap = after.ms_after(before)
        if after.kind == "heartbeat" and 0 <= gap < (1 - HEARTBEAT_SLACK_SHARE) * interval:
            expected = f"a heartbeat after {interval} ms without another response"
            return Finding(expected, f"a heartbeat after {gap:.1f} ms", after.event)
    whole = responses[-1].ms_after(responses[0])
    return True if whole >= interval else None


@law("OE-LOAD-048", methods=WATCH_LOAD_ONLY)
def nothing_repeated(transcript: Transcript, _: Declared) -> Ruling:
    """The same load is not sent again and again between heartbeats.

    Once may be a change that was over when the snapshot was made, so it takes three in a row.
    """
    responses = sent(transcript.events)
    settings = settings_of(responses)
    snapshots = of_kind(responses, "snapshot")
    if settings is None or not settings.effective_heartbeat_interval_ms or not snapshots:
        return None
    interval = settings.effective_heartbeat_interval_ms
    repeats = 0
    for before, after in pairwise(snapshots):
        soon = 0 <= after.ms_after(before) < (1 - HEARTBEAT_SLACK_SHARE) * interval
        same = not after.response.coalesced_events and _content(before) == _content(after)
        repeats = repeats + 1 if soon and same else 0
        if repeats > 1:
            return Finding("a snapshot when something changed", "the same thrice", after.event)
    return True


def _content(snapshot: Sent) -> tuple[object, ...]:
    """What a snapshot says, without when it was said."""
    content = v1.LoadSnapshot()
    content.CopyFrom(snapshot.response.snapshot)
    content.initial = False
    content.load.ClearField("timestamp_unix_nanos")
    content.detail.ClearField("sample_age_ms")
    return snapshot.pair, content.SerializeToString(deterministic=True)


LAWS = (snapshots_apart, never_silent, heartbeats_after_silence, nothing_repeated)
