"""Rules about the `openengine-` request metadata of data-plane calls.

Trace context and all other keys never change a result, so they are not looked at.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from reference_engine.server.rejection import Rejection, invalid

PREFIX = "openengine-"
PRIORITY = "openengine-priority"
TARGET_RANK = "openengine-target-dp-rank"
ROUTING_KEY = "openengine-routing-key"

Metadata = Iterable[tuple[str, str | bytes]]

_INT32 = range(-(2**31), 2**31)
_UINT32 = range(2**32)


def metadata_problems(
    metadata: Metadata, session_rank: int | None, num_ranks: int = 1
) -> Iterator[Rejection]:
    """What is wrong with the metadata; session_rank is kv.session.dp_rank if that is set."""
    ours = [(key.lower(), _text(value)) for key, value in metadata]
    ours = [(key, value) for key, value in ours if key.startswith(PREFIX)]
    for key, count in Counter(key for key, _ in ours).items():
        if count > 1:
            yield invalid(f"metadata {_shown(key)} is given {count} times, expected once")
    values = dict(ours)
    if PRIORITY in values and _integer(values[PRIORITY], _INT32) is None:
        yield invalid(f"metadata {PRIORITY} is malformed, expected a decimal 32-bit integer")
    if ROUTING_KEY in values and not _printable(values[ROUTING_KEY]):
        yield invalid(f"metadata {ROUTING_KEY} is malformed, expected non-empty printable ASCII")
    if TARGET_RANK in values:
        yield from _rank_problems(values[TARGET_RANK], session_rank, num_ranks)


def priority_of(metadata: Metadata) -> int:
    """The priority of a call whose metadata has no problems; 0 when none is given."""
    for key, value in metadata:
        if key.lower() == PRIORITY:
            return int(_text(value))
    return 0


def rank_of(metadata: Metadata) -> int | None:
    """The rank that a call without problems asks for; None when it asks for none."""
    for key, value in metadata:
        if key.lower() == TARGET_RANK:
            return int(_text(value))
    return None


def _rank_problems(value: str, session_rank: int | None, num_ranks: int) -> Iterator[Rejection]:
    rank = _integer(value, _UINT32)
    if rank is None:
        yield invalid(f"metadata {TARGET_RANK} is malformed, expected a decimal unsigned integer")
    elif session_rank is not None and rank != session_rank:
        yield invalid(f"metadata {TARGET_RANK} disagrees with kv.session.dp_rank")
    elif rank >= num_ranks:
        yield invalid(f"metadata {TARGET_RANK} is too large, expected below {num_ranks}")


def _integer(value: str, allowed: range) -> int | None:
    """The decimal integer, or None; int() alone would take spaces, '+', '_' and other digits."""
    if re.fullmatch(r"-?[0-9]{1,20}", value) is None or int(value) not in allowed:
        return None
    if value.startswith("-") and allowed.start >= 0:
        return None
    return int(value)


def _printable(value: str) -> bool:
    return re.fullmatch(r"[\x20-\x7e]+", value) is not None


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _shown(key: str) -> str:
    """The key if it is one of ours: an unknown one is the caller's own text."""
    return key if key in (PRIORITY, TARGET_RANK, ROUTING_KEY) else f"{PREFIX}*"
