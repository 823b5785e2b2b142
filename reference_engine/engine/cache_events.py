"""What happens to reusable blocks, told to whoever in this process wants to know.

Told in order, so that a listener can mirror the cache: the parent of a stored block is always
stored, and a block is removed before it is stored again.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """Consecutive full blocks of one prefix that can be reused from now on.

    digests, one per block; parent is the digest before the first, None at a prompt's start.
    token_ids are those of all blocks in a row, block_size each; keys are each block's extra keys.
    """

    digests: tuple[bytes, ...]
    parent: bytes | None
    token_ids: tuple[int, ...]
    block_size: int
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    """Blocks that cannot be reused any more."""

    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CacheCleared:
    """No block can be reused any more."""


CacheEvent = BlocksStored | BlocksRemoved | CacheCleared

Subscriber = Callable[[tuple[CacheEvent, ...]], None]
"""Takes the events of one moment, oldest first. Runs on the engine's thread and must not raise."""


class CacheEvents:
    """Gathers events and hands them to the subscribers, one batch for each engine step."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []
        self._waiting: list[CacheEvent] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; the function returned takes it off again."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def add(self, event: CacheEvent) -> None:
        """Note an event; neighbouring removals become one."""
        if not self._subscribers:
            return
        last = self._waiting[-1] if self._waiting else None
        if isinstance(event, BlocksRemoved) and isinstance(last, BlocksRemoved):
            self._waiting[-1] = BlocksRemoved(last.digests + event.digests)
        else:
            self._waiting.append(event)

    def flush(self) -> None:
        """Hand over what has happened since the last call, if anything has."""
        if not self._waiting:
            return
        batch, self._waiting = tuple(self._waiting), []
        for subscriber in tuple(self._subscribers):
            subscriber(batch)
