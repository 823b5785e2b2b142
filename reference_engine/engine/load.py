"""How busy the engine is, as one frozen set of numbers that any thread may read at any time."""

from dataclasses import dataclass

from reference_engine.engine.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Numbers between two steps, all of the same moment.

    running_requests: accepted and unfinished. queued_requests: those of them without a sequence
    that takes part in steps. running_tokens: tokens whose keys and values sequences hold, shared
    ones counted for each. waiting_tokens: prompt tokens of the queued requests. The batch sizes
    are sequences of the latest step, 0 when idle.
    """

    running_requests: int = 0
    queued_requests: int = 0
    used_blocks: int = 0
    total_blocks: int = 0
    running_tokens: int = 0
    waiting_tokens: int = 0
    prefill_batch_size: int = 0
    decode_batch_size: int = 0


def measure(scheduler: Scheduler, open_requests: int, open_prompt_tokens: int) -> LoadSnapshot:
    """The load with so many open requests, whose prompts have so many tokens together."""
    running = {id(sequence.request): sequence.num_prompt for sequence in scheduler.running}
    return LoadSnapshot(
        running_requests=open_requests,
        queued_requests=open_requests - len(running),
        used_blocks=scheduler.pool.num_used,
        total_blocks=scheduler.pool.num_blocks,
        running_tokens=sum(sequence.num_computed for sequence in scheduler.running),
        waiting_tokens=open_prompt_tokens - sum(running.values()),
        prefill_batch_size=scheduler.num_prefills if open_requests else 0,
        decode_batch_size=scheduler.num_decodes if open_requests else 0,
    )
