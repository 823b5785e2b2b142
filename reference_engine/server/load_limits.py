"""What may be asked of WatchLoad: advertised from here and enforced from here."""

from dataclasses import dataclass

from oe_wire import v1

# A message of one stream costs about 70 us of a thread that generation needs as well. Streams
# together get one every 2 ms, so 3.5 % of it, however many there are and whatever they wish.
MESSAGE_MS = 2
# Messages in a row: half the cost of single ones, and 2 ms in which nothing else is served.
BURST = 32
# The load is looked at this often, or once for each burst when there are more messages.
PERIOD_MS = 10
# A stream waits for its turn by so much beyond its interval: 1 s would be allowed.
MOST_LATE_MS = 800
# Changes of the capabilities have to be on every stream within 2 s.
LONGEST_INTERVAL_MS = 1_500


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of one interval in milliseconds: 1 <= floor <= default <= ceiling."""

    floor: int
    default: int
    ceiling: int

    def clamp(self, wish: int) -> int:
        """The nearest interval within the bounds."""
        return min(max(wish, self.floor), self.ceiling)


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """An engine with more streams promises less to each: all of them have to get their turn."""

    max_watch_streams: int
    sample_period_ms: int
    min_interval: Interval
    heartbeat: Interval

    @classmethod
    def of_streams(cls, most: int) -> "LoadLimits":
        """The promises that can be kept to so many streams, 4 to 1024.

        A round of all takes 2 ms each. Snapshots may be late by MOST_LATE_MS, heartbeats by half
        their interval or by 500 ms; a heartbeat is due at least two rounds after the last message.
        """
        round_ms = most * MESSAGE_MS
        shortest = max(PERIOD_MS, round_ms - MOST_LATE_MS)
        silence = 100 if round_ms <= 400 else round_ms * 5 // 2
        return cls(
            max_watch_streams=most,
            sample_period_ms=max(PERIOD_MS, min(most, BURST) * MESSAGE_MS),
            min_interval=Interval(shortest, max(100, shortest), LONGEST_INTERVAL_MS),
            heartbeat=Interval(silence, max(1_000, silence), 60_000),
        )


# Everything that LoadInfo has a scalar for; see reference_engine/server/load.py.
_NOT_REPORTED = ("instance_id", "ranks", "attributes")
REPORTED_FIELDS = tuple(
    field.name for field in v1.LoadInfo.DESCRIPTOR.fields if field.name not in _NOT_REPORTED
)


def load_capabilities(limits: LoadLimits) -> v1.LoadCapabilities:
    """The limits as they are advertised."""
    return v1.LoadCapabilities(
        min_interval_floor_ms=limits.min_interval.floor,
        min_interval_ceiling_ms=limits.min_interval.ceiling,
        min_interval_default_ms=limits.min_interval.default,
        heartbeat_floor_ms=limits.heartbeat.floor,
        heartbeat_ceiling_ms=limits.heartbeat.ceiling,
        heartbeat_default_ms=limits.heartbeat.default,
        heartbeat_can_be_disabled=True,
        max_watch_streams=limits.max_watch_streams,
        supports_per_rank=True,
        sample_period_ms=limits.sample_period_ms,
        reported_fields=REPORTED_FIELDS,
    )
