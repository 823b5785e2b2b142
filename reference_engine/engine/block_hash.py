"""The public identity of a block's content: a digest over all that its keys and values depend on.

The chain makes a digest stand for the whole prefix: parent digest, the block's tokens, and its
extra keys (salt, adapter, media). Reuse itself compares the tokens, see prefix_cache.py.
"""

from array import array
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from hashlib import blake2b

from reference_engine.engine.request import CacheUse

# 128 bits: two of 2**40 blocks collide with a chance of about 2**-49.
DIGEST_BYTES = 16

HashBlock = Callable[[bytes, SequenceOf[int], tuple[str, ...]], bytes]
"""(parent digest or b"", token ids, extra keys) -> digest."""


def hash_block(parent: bytes, token_ids: SequenceOf[int], keys: tuple[str, ...]) -> bytes:
    """The digest of a block behind `parent`, which is empty for the first block of a prompt."""
    encoded = [key.encode() for key in keys]
    # Lengths in front, so that no two inputs give the same bytes.
    lengths = array("Q", (len(parent), len(token_ids), len(keys), *map(len, encoded)))
    digest = blake2b(lengths.tobytes(), digest_size=DIGEST_BYTES, person=b"kv block")
    digest.update(parent)
    digest.update(array("Q", token_ids).tobytes())
    digest.update(b"".join(encoded))
    return digest.digest()


def extra_keys(use: CacheUse, index: int) -> tuple[str, ...]:
    """Extra keys of block `index` of a sequence.

    The salt is in the first block only: the chain carries it on. The prefixes keep a caller's
    salt from passing for an adapter.
    """
    keys = tuple(f"key:{key}" for key in use.keys) if use.keys else ()
    return keys if index or use.salt is None else (*keys, f"salt:{use.salt}")
