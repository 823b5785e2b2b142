"""Priority and prefix cache as callers see them, over real gRPC."""

import threading

import pytest

from oe_wire import v1
from reference_engine.engine.config import EngineConfig
from tests.reference_engine.server.running import (
    GatedModel,
    fake_model,
    finish,
    fresh_id,
    generate_request,
    serving,
)

ONE_PLACE = EngineConfig(num_blocks=1024, block_size=4, max_running=1, max_waiting=16)
GENERATE = "openengine.v1.Inference/Generate"


class WatchedModel(GatedModel):
    """Notes the first token of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.entered = threading.Event()

    def __call__(self, batch, cache):
        self.entered.set()
        self.gate.wait(20)
        self.seen.append(int(batch.token_ids[0]))
        return self.model(batch, cache)


def test_higher_priority_is_scheduled_first():
    """Queued requests run by priority, equal ones in order of arrival, whatever came first."""
    model = WatchedModel()
    prompts = {b"A": 0, b"B": -1, b"C": 0, b"D": 7, b"E": None, b"F": 7}
    with serving(fake_model(model), ONE_PLACE) as engine:
        calls = []
        for prompt, priority in prompts.items():
            metadata = () if priority is None else (("openengine-priority", str(priority)),)
            request = generate_request(list(prompt * 3))
            request.stopping.max_tokens = 1
            call = engine.start(GENERATE, request, metadata=metadata)
            # Sent when the request is accepted; the first must hold the place before others queue.
            call.initial_metadata()
            assert model.entered.wait(20)
            calls.append(call)
        model.gate.set()
        for call in calls:
            assert finish(call).messages
    assert bytes(model.seen) == b"ADFCEB"


def cached(engine, prompt: str, kv: v1.KvOptions | None = None, *, outputs: int = 1) -> int:
    request = generate_request(prompt, kv=kv)
    request.sampling.num_sequences = outputs
    usage = engine.generate(request).messages[-1].usage
    assert usage.HasField("cached_prompt_tokens")
    assert usage.prompt_tokens == len(prompt)
    return usage.cached_prompt_tokens


def test_cached_prompt_tokens(engine):
    """The second request with a prompt reports its full blocks, however many outputs it has."""
    prompt = fresh_id() * 6
    whole = (len(prompt) - 1) // 16 * 16
    assert [cached(engine, prompt), cached(engine, prompt)] == [0, whole]
    assert cached(engine, prompt, outputs=3) == whole
    assert cached(engine, prompt[:40]) == 32


def test_bypass(engine):
    """A request that bypasses the prefix cache reports no cached tokens."""
    prompt = fresh_id() * 6
    assert cached(engine, prompt) == 0
    assert cached(engine, prompt, v1.KvOptions(bypass_prefix_cache=True)) == 0
    assert cached(engine, prompt, v1.KvOptions(bypass_prefix_cache=False)) > 0


@pytest.mark.parametrize("first", [None, "a", ""])
def test_salts_do_not_share(engine, first):
    """Requests share cached tokens with their own salt only."""

    def kv(salt):
        return None if salt is None else v1.KvOptions(cache_salt=salt)

    prompt = fresh_id() * 6
    assert cached(engine, prompt, kv(first)) == 0
    for salt in {None, "a", "", "b"} - {first}:
        assert cached(engine, prompt, kv(salt)) == 0
    assert cached(engine, prompt, kv(first)) > 0
