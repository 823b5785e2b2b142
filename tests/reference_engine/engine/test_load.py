"""The load numbers, step by step."""

from dataclasses import replace

from reference_engine.engine.load import LoadSnapshot
from reference_engine.engine.request import CacheUse
from tests.reference_engine.engine.fakes import ScriptModel, build, request

BYPASS = CacheUse(bypass=True)


def test_load_of_a_short_history():
    """Numbers follow requests through waiting, prefill, decode and the end."""
    built = build(ScriptModel(b"x" * 9, 6), num_blocks=32, block_size=4, max_running=2)
    core = built.core
    idle = LoadSnapshot(total_blocks=32)
    assert core.load == idle
    two = replace(request(b"abcdef", max_tokens=3, num_sequences=2), cache=BYPASS)
    core.add(two)
    core.add(replace(request(b"ghij", max_tokens=1), cache=BYPASS))
    assert core.load == replace(idle, running_requests=2, queued_requests=2, waiting_tokens=10)
    core.step()
    # Both requests got a place; the second output of the first found none and waits.
    assert core.load == replace(
        idle,
        running_requests=1,
        used_blocks=2,
        running_tokens=6,
        prefill_batch_size=2,
    )
    core.step()
    assert core.load.decode_batch_size == 1
    assert core.load.prefill_batch_size == 1
    assert core.load.running_tokens == 7 + 6
    while core.busy:
        core.step()
    assert core.load == idle


def test_load_after_abort_and_fault():
    """Aborted and failed requests leave nothing in the numbers."""
    built = build(ScriptModel(b"x" * 99, 2))
    opened = built.core.add(request())
    built.core.add(request())
    built.core.step()
    built.core.abort(opened)
    assert built.core.load.running_requests == 1
    built.core.fail_all("broken")
    assert built.core.load == LoadSnapshot(total_blocks=64)
