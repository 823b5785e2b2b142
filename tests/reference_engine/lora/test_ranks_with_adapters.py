"""An adapter is on every rank."""

from dataclasses import replace

import pytest

from oe_wire import v1
from reference_engine.lora.limits import LoraLimits
from reference_engine.ranks.start import start_ranks
from reference_engine.ranks.worker import RankSetup
from tests.reference_engine.lora.build import write_adapter
from tests.reference_engine.ranks import models
from tests.reference_engine.server.conftest import CONFIG
from tests.reference_engine.server.running import fake_model, generate_request, serving

LOAD = "openengine.v1.Control/LoadLora"
UNLOAD = "openengine.v1.Control/UnloadLora"


@pytest.fixture
def engine():
    config = replace(CONFIG, lora=LoraLimits(max_loaded=2, max_resident=1, max_rank=8))
    ranks = start_ranks(2, RankSetup(models.load, config, threads=1))
    try:
        with serving(fake_model(), config, ranks=ranks) as running:
            yield running
    finally:
        for one in ranks:
            one.stop()


def texts(engine, name):
    """The answer of each rank."""
    request = generate_request(lora_name=name)
    return [
        engine.generate(request, metadata=(("openengine-target-dp-rank", str(rank)),)).text()
        for rank in range(2)
    ]


def test_every_rank_has_it(engine, tmp_path):
    """Both ranks answer alike, through eviction, reload and unload."""
    for lora_id, name in enumerate("ab", 1):
        path = write_adapter(tmp_path / name, seed=lora_id)
        adapter = v1.LoraAdapter(lora_id=lora_id, lora_name=name, source_path=str(path))
        assert not engine.call(LOAD, v1.LoadLoraRequest(adapter=adapter)).message.already_loaded
    found = {name: texts(engine, name) for name in ("a", "b", "a", "")}
    assert all(one == other for one, other in found.values())
    assert len({one for one, _ in found.values()}) == 3
    engine.call(UNLOAD, v1.UnloadLoraRequest(lora_name="a"))
    assert texts(engine, "b") == found["b"]
