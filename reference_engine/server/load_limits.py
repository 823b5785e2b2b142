"""What may be asked of WatchLoad: advertised from here and enforced from here."""

from dataclasses import dataclass

from oe_wire import v1

# A message of one stream costs about 75 us of a thread that holds Python's lock meanwhile, which
# generation needs as well. Streams together get one every 6 ms, so little more than 1 % of it,
# however many there are and whatever they wish. Up to 16 of them still have one every 100 ms, and
# a round of 64 is short enough for every interval of heartbeats from 100 ms on.
MESSAGE_MS = 6
# Messages in a row, 2.5 ms in which nothing else is served. Shorter rows take the lock from
# generation more often: it was slower with 12, for the same number of messages.
BURST = 32
# The load is looked at this often, or once for each burst when there are more messages.
PERIOD_MS = 10
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
    """sample_period_ms: a stream gets its turn at least this often, when all of them are open."""

    max_watch_streams: int
    sample_period_ms: int
    min_interval: Interval
    heartbeat: Interval

    @classmethod
    def of_streams(cls, most: int) -> "LoadLimits":
        """The promises that can be kept to so many streams, 4 to 1024.

        Heartbeats may be late by half their interval or by 500 ms: a round has to fit into that.
        """
        round_ms = max(PERIOD_MS, most * MESSAGE_MS)
        silence = 100 if round_ms <= 400 else round_ms * 5 // 2
        return cls(
            max_watch_streams=most,
            sample_period_ms=round_ms,
            min_interval=Interval(PERIOD_MS, 100, LONGEST_INTERVAL_MS),
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
