"""The rows of profile `adapters`, over gRPC; each test that needs an empty engine empties it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.errors import ConfigError
from reference_engine.lora.limits import LoraLimits
from reference_engine.lora.peft_directory import read_adapter
from reference_engine.model.load import LoadedModel
from reference_engine.server.app import ServeOptions
from reference_engine.server.listen import Address
from tests.reference_engine.engine.fakes import ByteTokenizer, random_model
from tests.reference_engine.lora.build import SHAPES, merge, write_adapter
from tests.reference_engine.server.conftest import CONFIG
from tests.reference_engine.server.running import (
    Client,
    GatedModel,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

CONTROL = "openengine.v1.Control"
ADAPTERS = "openengine.v1.OpenEngineAdapters"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
LIMITS = LoraLimits(max_loaded=3, max_resident=2, max_rank=8)
WITH_LORA = replace(CONFIG, lora=LIMITS)
Code = grpc.StatusCode


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Four adapters, and a directory of garbage."""
    root = tmp_path_factory.mktemp("adapters")
    found = {name: write_adapter(root / name, seed=seed) for seed, name in enumerate("abcd", 11)}
    found["garbage"] = root / "garbage"
    found["garbage"].mkdir()
    (found["garbage"] / "adapter_config.json").write_text("garbage")
    return {name: str(path) for name, path in found.items()}


@pytest.fixture(scope="module")
def shared():
    with serving(fake_model(random_model().prepare()), WITH_LORA) as running:
        yield running


@pytest.fixture
def engine(shared):
    """The engine of the module, without adapters."""
    for one in listed(shared):
        unload(shared, one.lora_name)
    return shared


def load(engine, lora_id, name, path, service=CONTROL):
    adapter = v1.LoraAdapter(lora_id=lora_id, lora_name=name, source_path=path)
    return engine.call(f"{service}/LoadLora", v1.LoadLoraRequest(adapter=adapter))


def unload(engine, name, service=CONTROL):
    return engine.call(f"{service}/UnloadLora", v1.UnloadLoraRequest(lora_name=name))


def listed(engine, service=CONTROL):
    outcome = engine.call(f"{service}/ListLoras", v1.ListLorasRequest())
    return sorted(outcome.message.adapters, key=lambda one: one.lora_id)


def text(engine, **fields):
    outcome = engine.generate(generate_request(**fields))
    assert outcome.code is Code.OK, outcome.details
    return outcome.text()


@pytest.mark.parametrize(("one", "other"), [(CONTROL, ADAPTERS), (ADAPTERS, CONTROL)])
def test_001_one_state_under_two_names(engine, paths, one, other):
    """What is loaded by one service is listed and unloaded by the other."""
    loaded = load(engine, 1, "a", paths["a"], one).message.adapter
    assert listed(engine, other) == listed(engine, one) == [loaded]
    assert unload(engine, "a", other).message.adapter == loaded
    assert listed(engine, one) == []


@pytest.mark.parametrize(
    "wanted",
    [
        (0, "x", "a"),
        (-3, "x", "a"),
        (1, "", "a"),
        (1, "x", ""),
        (1, "x", "relative/path"),
        (1, "x", "/no/such/directory"),
        (1, "x", "/etc/hostname"),
        (1, "x", "/\0"),
    ],
)
def test_002_bad_fields(engine, paths, wanted):
    """INVALID_ARGUMENT, no entry, and the message repeats no path."""
    lora_id, name, path = wanted
    outcome = load(engine, lora_id, name, paths.get(path, path))
    assert outcome.code is Code.INVALID_ARGUMENT
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_INVALID_ARGUMENT"
    assert len(path) < 2 or path not in outcome.details
    assert listed(engine) == []


@pytest.mark.parametrize("service", [CONTROL, ADAPTERS])
def test_003_no_adapter(engine, service):
    """A request without an adapter message."""
    outcome = engine.call(f"{service}/LoadLora", v1.LoadLoraRequest())
    assert outcome.code is Code.INVALID_ARGUMENT


def test_004_the_same_again(engine, paths):
    """already_loaded tells the first from the second."""
    first, second = (load(engine, 7, "a", paths["a"]).message for _ in range(2))
    assert (first.already_loaded, second.already_loaded) == (False, True)
    assert first.adapter == second.adapter
    assert len(listed(engine)) == 1


def test_005_conflicts(engine, paths):
    """Two of three, or one of three, equal to a loaded adapter."""
    load(engine, 1, "a", paths["a"])
    before = listed(engine)
    for wanted in [
        (1, "a", "b"),
        (1, "x", "a"),
        (2, "a", "a"),
        (1, "x", "b"),
        (2, "a", "b"),
        (2, "x", "a"),
    ]:
        lora_id, name, path = wanted
        outcome = load(engine, lora_id, name, paths[path])
        assert outcome.code is Code.ALREADY_EXISTS
        assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_DUPLICATE_REQUEST"
    assert listed(engine) == before


def test_006_unload_of_nothing(engine):
    """Unknown and empty names."""
    assert unload(engine, "unknown").code is Code.NOT_FOUND
    assert unload(engine, "").code is Code.INVALID_ARGUMENT


@pytest.fixture(scope="module")
def without():
    with serving(fake_model(), CONFIG) as running:
        yield running


def test_007_without_lora(without, paths):
    """Without LoRA the RPCs are UNIMPLEMENTED, nothing is advertised, and a name is refused."""
    for service in (CONTROL, ADAPTERS):
        assert load(without, 1, "a", paths["a"], service).code is Code.UNIMPLEMENTED
        assert unload(without, "a", service).code is Code.UNIMPLEMENTED
        listing = without.call(f"{service}/ListLoras", v1.ListLorasRequest())
        assert listing.code is Code.UNIMPLEMENTED
    capabilities = without.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest())
    assert not capabilities.message.HasField("adapters")
    assert [one.name for one in capabilities.message.profiles if one.name == "adapters"] == []
    model = without.call(f"{CONTROL}/GetModelInfo", v1.GetModelInfoRequest(model="fake"))
    assert model.message.supports_lora is False
    info = without.call(f"{CONTROL}/GetServerInfo", v1.GetServerInfoRequest()).message
    assert not info.capacity.HasField("max_loras")
    outcome = without.generate(generate_request(lora_name="a"))
    assert outcome.code is Code.INVALID_ARGUMENT


def test_008_the_list_follows_every_change(engine, paths):
    """Exactly the loaded ones, after loads, unloads and refusals."""
    load(engine, 1, "a", paths["a"])
    load(engine, 2, "b", paths["b"])
    load(engine, 3, "c", paths["garbage"])
    assert [(one.lora_id, one.lora_name, one.source_path) for one in listed(engine)] == [
        (1, "a", paths["a"]),
        (2, "b", paths["b"]),
    ]
    unload(engine, "a")
    load(engine, 1, "c", paths["a"])
    assert [(one.lora_id, one.lora_name) for one in listed(engine)] == [(1, "c"), (2, "b")]


def test_009_generate_with_an_adapter(engine, paths):
    """It answers like the merged weights, unlike the base, and not after unload."""
    load(engine, 1, "a", paths["a"])
    weights = read_adapter(paths["a"], SHAPES, 8).weights
    merged = merge(random_model(), weights)
    loaded = LoadedModel("fake", merged, ByteTokenizer(), fake_model().config)
    with serving(loaded, CONFIG) as other:
        expected = text(other)
    assert text(engine, lora_name="a") == expected != text(engine)
    unload(engine, "a")
    outcome = engine.generate(generate_request(lora_name="a"))
    assert outcome.code is Code.NOT_FOUND
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_MODEL_NOT_FOUND"
    assert outcome.messages == []


def test_009_with_everything_else(engine, paths):
    """Prompt as text or ids, prompt logprobs and several outputs work with an adapter."""
    load(engine, 1, "a", paths["a"])
    request = generate_request(list(b"abc"), lora_name="a")
    request.sampling.num_sequences = 2
    request.response.return_prompt_logprobs = True
    outcome = engine.generate(request)
    assert outcome.code is Code.OK
    assert outcome.text(0) == outcome.text(1) == text(engine, lora_name="a")
    assert outcome.messages[0].WhichOneof("event") == "prompt"


def test_009_the_cache_keeps_adapters_apart(engine, paths):
    """Another adapter, the base, and the same name loaded again compute the prompt anew."""
    prompt = "a prompt of more than sixteen bytes, which is a block"

    def cached(name):
        outcome = engine.generate(generate_request(prompt, lora_name=name))
        assert outcome.code is Code.OK, outcome.details
        return outcome.messages[-1].usage.cached_prompt_tokens

    load(engine, 1, "a", paths["a"])
    load(engine, 2, "b", paths["b"])
    assert [cached(name) for name in ("a", "b", "", "a", "b", "")] == [0, 0, 0, 48, 48, 48]
    unload(engine, "a")
    load(engine, 1, "a", paths["a"])
    assert (cached("a"), cached("a")) == (0, 48)


def test_010_a_full_engine(engine, paths):
    """One more than the limit is refused, nobody is evicted, and all of them generate."""
    for lora_id, name in enumerate("abc", 1):
        assert load(engine, lora_id, name, paths[name]).code is Code.OK
    outcome = load(engine, 4, "d", paths["d"])
    assert outcome.code is Code.RESOURCE_EXHAUSTED
    assert [one.lora_name for one in listed(engine)] == ["a", "b", "c"]
    assert len({text(engine, lora_name=name) for name in "abc"}) == 3


def test_010_more_loaded_than_resident(engine, paths):
    """Requests for three adapters at once share two places, and each gets its own answer."""
    for lora_id, name in enumerate("abc", 1):
        load(engine, lora_id, name, paths[name])
    alone = {name: text(engine, lora_name=name) for name in ("a", "b", "c", "")}
    names = ["a", "b", "c", ""] * 3
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(lambda name: text(engine, lora_name=name), names))
    assert found == [alone[name] for name in names]
    assert len(engine.app.frontend.adapters._residency.keys) == 2


def test_011_unload_while_in_use(paths):
    """A running request goes on unchanged; new ones are refused, and a new load is its own."""
    model = GatedModel()
    model.model.prepare()
    with serving(fake_model(model), WITH_LORA) as engine:
        model.gate.set()
        load(engine, 1, "a", paths["a"])
        request = generate_request(lora_name="a")
        expected = engine.generate(request).text()
        model.gate.clear()
        running = engine.start_generate(generate_request(lora_name="a"))
        running.initial_metadata()
        assert unload(engine, "a").code is Code.OK
        assert listed(engine) == []
        assert engine.generate(generate_request(lora_name="a")).code is Code.NOT_FOUND
        assert load(engine, 1, "a", paths["b"]).code is Code.OK
        model.gate.set()
        assert finish(running).text() == expected
        assert text(engine, lora_name="a") != expected


def test_011_a_caller_that_goes_away(engine, paths):
    """Its use ends too, and the engine goes on."""
    load(engine, 1, "a", paths["a"])
    call = engine.start_generate(long_request(lora_name="a"))
    next(call)
    call.cancel()
    with suppress(grpc.RpcError):
        list(call)
    unload(engine, "a")
    load(engine, 2, "b", paths["b"])
    assert text(engine, lora_name="b") != text(engine)


def test_012_what_is_advertised(engine):
    """Profile, limits and the flag of the model agree."""
    capabilities = engine.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest()).message
    (profile,) = [one for one in capabilities.profiles if one.name == "adapters"]
    assert (profile.major, profile.minor) == (1, 0)
    assert list(profile.models) == list(capabilities.adapters.models) == ["fake"]
    assert ADAPTERS in profile.services
    limits = capabilities.adapters
    assert (limits.max_loaded, limits.max_resident, limits.max_rank) == (3, 2, 8)
    assert limits.unload_while_in_use
    info = engine.call(f"{CONTROL}/GetServerInfo", v1.GetServerInfoRequest()).message
    assert info.capacity.max_loras == 3
    model = engine.call(f"{CONTROL}/GetModelInfo", v1.GetModelInfoRequest(model="fake")).message
    assert model.supports_lora is True
    check = health.HealthCheckRequest(service=ADAPTERS)
    answer = engine.call("grpc.health.v1.Health/Check", check).message
    assert answer.status == health.HealthCheckResponse.SERVING


def test_012_on_the_listener_of_the_control_plane(paths):
    """With two listeners, the adapters are where discovery says that they are."""
    listen = Address("127.0.0.1", 0)
    with serving(fake_model(), WITH_LORA, ServeOptions(listen, control=listen)) as engine:
        assert load(engine, 1, "a", paths["a"], ADAPTERS).code is Code.UNIMPLEMENTED
        control = Client(engine.app.control_address)
        info = control.call(f"{DISCOVERY}/GetEngineInfo", v1.GetEngineInfoRequest()).message
        (place,) = [one for one in info.service_endpoints if one.service == ADAPTERS]
        assert f"{place.host}:{place.port}" == engine.app.control_address
        assert load(control, 1, "a", paths["a"], ADAPTERS).code is Code.OK
        assert text(engine, lora_name="a") != text(engine)
        control.channel.close()


def test_013_equal_loads_at_once(engine, paths):
    """Of eight, one has not found it loaded."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: load(engine, 1, "a", paths["a"]).message, range(8)))
    assert sorted(one.already_loaded for one in answers) == [False] + [True] * 7
    assert len(listed(engine)) == 1


def test_014_the_revision_stays(engine, paths):
    """Loads and unloads change neither the capabilities nor the numbers of their version."""

    def advertised():
        found = engine.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest()).message
        info = engine.call(f"{DISCOVERY}/GetEngineInfo", v1.GetEngineInfoRequest()).message
        return found, info.configuration_epoch, info.capability_revision

    before = advertised()
    load(engine, 1, "a", paths["a"])
    assert advertised() == before
    unload(engine, "a")
    assert advertised() == before


def test_015_a_failed_load_leaves_nothing(engine, paths, tmp_path):
    """Garbage and an adapter of another kind; the same id and name can be loaded afterwards."""
    dora = str(write_adapter(tmp_path, use_dora=True))
    for path, code in [
        (paths["garbage"], "ERROR_CODE_INVALID_ARGUMENT"),
        (dora, "ERROR_CODE_UNSUPPORTED_FEATURE"),
    ]:
        outcome = load(engine, 1, "a", path)
        assert outcome.code is Code.INVALID_ARGUMENT
        assert outcome.trailers["openengine-error-code"] == code
        assert path not in outcome.details
    assert listed(engine) == []
    assert load(engine, 1, "a", paths["a"]).message.already_loaded is False


def test_changed_files(engine, paths, tmp_path):
    """An evicted adapter whose files have changed is refused; after that the others work."""
    moving = write_adapter(tmp_path / "moving", seed=30)
    load(engine, 1, "moving", str(moving))
    for lora_id, name in ((2, "a"), (3, "b")):
        load(engine, lora_id, name, paths[name])
        text(engine, lora_name=name)
    write_adapter(moving, seed=31)
    outcome = engine.generate(generate_request(lora_name="moving"))
    assert outcome.code is Code.FAILED_PRECONDITION
    assert text(engine, lora_name="a") != text(engine, lora_name="b")


def test_adapters_from_the_start(paths):
    """They are there when the engine answers; a bad one is an error of the options."""
    listen = Address("127.0.0.1", 0)
    options = ServeOptions(listen, adapters=(("first", paths["a"]), ("second", paths["b"])))
    with serving(fake_model(), WITH_LORA, options) as engine:
        assert [(one.lora_id, one.lora_name) for one in listed(engine)] == [
            (1, "first"),
            (2, "second"),
        ]
        assert text(engine, lora_name="first") != text(engine, lora_name="second")
    bad = ServeOptions(listen, adapters=(("bad", paths["garbage"]),))
    with (
        pytest.raises(ConfigError, match="--lora bad="),
        serving(fake_model(), WITH_LORA, bad),
    ):
        pass
