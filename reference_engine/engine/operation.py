"""What an administrator does to an engine as a whole, between two of its steps."""

from enum import Enum


class Operation(Enum):
    """Each may be repeated without further effect.

    HOLD_NEW: requests that come from now on are taken, but do not run. HOLD_ALL: nothing runs; what
    has begun keeps its blocks. RELEASE: both holds end. CLEAR_CACHE: no block of the prefix cache
    is reused any more; sequences keep those that they hold.
    """

    HOLD_NEW = "hold_new"
    HOLD_ALL = "hold_all"
    RELEASE = "release"
    CLEAR_CACHE = "clear_cache"
