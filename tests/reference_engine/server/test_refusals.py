"""What Generate refuses: status, error code in the trailers, no message, no trace."""

import grpc
import pytest

from oe_wire import v1
from oe_wire.services import METHODS
from tests.reference_engine.engine.fakes import VOCABULARY
from tests.reference_engine.server.running import WINDOW, finish, generate_request, long_request

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NAN, INFINITE = float("nan"), float("inf")
SECRET = "a-secret-word"


def sampling(**values):
    return {"sampling": v1.SamplingParams(**values)}


def stopping(**values):
    return {"stopping": v1.StoppingOptions(**values)}


def response(**values):
    return {"response": v1.ResponseOptions(**values)}


def stop(**values):
    return stopping(conditions=[v1.StopCondition(**values)])


def output_candidates(**values):
    selection = v1.CandidateTokenSelection(**values)
    return response(return_output_logprobs=True, output_candidates=selection)


MALFORMED = {
    "num_sequences zero": sampling(num_sequences=0),
    "num_sequences over the limit": sampling(num_sequences=9),
    "max_tokens zero": stopping(max_tokens=0),
    "max_tokens over the limit": stopping(max_tokens=WINDOW + 1),
    "min_tokens over max_tokens": stopping(max_tokens=4, min_tokens=5),
    "temperature negative": sampling(temperature=-0.1),
    "temperature nan": sampling(temperature=NAN),
    "temperature infinite": sampling(temperature=INFINITE),
    "top_p zero": sampling(top_p=0.0),
    "top_p above one": sampling(top_p=1.01),
    "top_p nan": sampling(top_p=NAN),
    "top_k below -1": sampling(top_k=-2),
    "min_p above one": sampling(min_p=1.5),
    "min_p negative": sampling(min_p=-0.5),
    "min_p nan": sampling(min_p=NAN),
    "repetition zero": sampling(repetition_penalty=0.0),
    "repetition infinite": sampling(repetition_penalty=INFINITE),
    "frequency nan": sampling(frequency_penalty=NAN),
    "presence infinite": sampling(presence_penalty=-INFINITE),
    "stop without a variant": stop(),
    "stop text empty": stop(stop_text=""),
    "stop text over the limit": stop(stop_text="é" * 513),
    "too many stops": stopping(conditions=[v1.StopCondition(stop_token_id=1)] * 65),
    "candidates without a variant": output_candidates(),
    "top_n over the limit": output_candidates(top_n=21),
    "candidate outside the vocabulary": output_candidates(token_ids=v1.TokenIds(ids=[VOCABULARY])),
    "candidates without logprobs": response(output_candidates={"top_n": 1}),
    "prompt candidates without logprobs": response(prompt_candidates={"top_n": 1}),
    "prompt start over the prompt": response(return_prompt_logprobs=True, prompt_logprob_start=4),
    "guided without a guide": {"guided": v1.GuidedDecoding(backend="x")},
    "media without a source": {"media": [v1.MediaItem(modality=1)]},
    "id too long": {"request_id": "x" * 257},
}
UNSUPPORTED = {
    "media": {"media": [v1.MediaItem(modality=1, raw_bytes=b"x")]},
    "adapter": {"lora_name": SECRET},
}


def refused(engine, request, status, code, metadata=()):
    """The call is refused, nothing of it stays, and the message tells no secret."""
    outcome = engine.generate(request, metadata=metadata)
    assert (outcome.code, outcome.messages) == (status, [])
    assert outcome.trailers["openengine-error-code"] == f"ERROR_CODE_{code}"
    assert outcome.trailers["openengine-error-retryable"] == "false"
    assert outcome.details
    assert SECRET not in outcome.details
    assert engine.app.frontend.engine.num_open == 0
    assert engine.abort(request.request_id or "none").code is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(engine, changes):
    """Out of range, missing or contradicting values are INVALID_ARGUMENT."""
    refused(engine, generate_request(**changes), INVALID, "INVALID_ARGUMENT")


@pytest.mark.parametrize("changes", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_unsupported(engine, changes):
    """An explicit option that the engine lacks is refused, never ignored."""
    refused(engine, generate_request(SECRET, **changes), INVALID, "UNSUPPORTED_FEATURE")


@pytest.mark.parametrize("field", ["request_id", "model", "prompt"])
def test_missing(engine, field):
    """An empty id, model or input is INVALID_ARGUMENT."""
    request = generate_request()
    request.ClearField(field)
    refused(engine, request, INVALID, "INVALID_ARGUMENT")


@pytest.mark.parametrize("ids", [[], [VOCABULARY], [1, 2**32 - 1], [65] * (WINDOW + 1)])
def test_bad_token_ids(engine, ids):
    """No ids, ids outside the vocabulary, or more than the window are INVALID_ARGUMENT."""
    request = generate_request(ids)
    request.token_ids.SetInParent()
    refused(engine, request, INVALID, "INVALID_ARGUMENT")


@pytest.mark.parametrize("prompt", ["", "x" * (WINDOW + 1), SECRET * 100_000])
def test_bad_text(engine, prompt):
    """Empty text and text of more tokens than the window are INVALID_ARGUMENT."""
    refused(engine, generate_request(prompt), INVALID, "INVALID_ARGUMENT")


def test_unknown_model(engine):
    """A model that is not served is NOT_FOUND."""
    request = generate_request(model=SECRET)
    refused(engine, request, grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND")


def test_session(engine):
    """A KV session on an engine without hand-over is a role mismatch."""
    request = generate_request(kv=v1.KvOptions(session={"session_id": SECRET}))
    refused(engine, request, grpc.StatusCode.FAILED_PRECONDITION, "ROLE_MISMATCH")


@pytest.mark.parametrize(
    "metadata",
    [
        [("openengine-priority", "")],
        [("openengine-priority", "+1")],
        [("openengine-priority", "1 2")],
        [("openengine-priority", "1_0")],
        [("openengine-priority", "2147483648")],
        [("openengine-priority", "0x1")],
        [("openengine-priority", "1"), ("openengine-priority", "1")],
        [("openengine-target-dp-rank", "")],
        [("openengine-target-dp-rank", "-1")],
        [("openengine-target-dp-rank", "1")],
        [("openengine-target-dp-rank", "4294967296")],
        [("openengine-routing-key", "")],
        [("openengine-routing-key", SECRET)] * 2,
        [("openengine-unknown", SECRET)] * 2,
    ],
)
def test_bad_metadata(engine, metadata):
    """Malformed or repeated openengine- keys are INVALID_ARGUMENT."""
    refused(engine, generate_request(), INVALID, "INVALID_ARGUMENT", metadata)


def test_rank_against_session(engine):
    """A target rank that disagrees with the session's is INVALID_ARGUMENT."""
    request = generate_request(kv=v1.KvOptions(session={"session_id": "s", "dp_rank": 3}))
    metadata = [("openengine-target-dp-rank", "0")]
    refused(engine, request, INVALID, "INVALID_ARGUMENT", metadata)


def test_metadata_is_ignored_outside_the_data_plane(engine):
    """Control and Discovery take malformed and repeated keys."""
    metadata = [("openengine-priority", "x"), ("openengine-priority", "x")]
    for name, request in (
        ("openengine.v1.Control/GetServerInfo", v1.GetServerInfoRequest()),
        ("openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()),
    ):
        assert engine.call(name, request, metadata=metadata).code is grpc.StatusCode.OK


def test_duplicate_id(engine):
    """An active id is ALREADY_EXISTS, and the first request goes on."""
    request = long_request()
    first = engine.start_generate(request)
    next(first)
    outcome = engine.generate(request)
    assert (outcome.code, outcome.messages) == (grpc.StatusCode.ALREADY_EXISTS, [])
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_DUPLICATE_REQUEST"
    assert next(first).HasField("token")
    assert engine.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
    assert finish(first).code is grpc.StatusCode.OK


def test_oversized_message(engine):
    """A message above max_request_bytes is refused and the connection goes on."""
    outcome = engine.generate(generate_request("x" * (4 * 1024 * 1024 + 1)))
    assert outcome.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert engine.generate(generate_request()).code is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "name",
    [
        "openengine.v1.Control/GetKvEventSources",
        "openengine.v1.Control/ListLoras",
        "openengine.v1.OpenEngineKv/GetKvEventSources",
        "openengine.v1.OpenEngineTasks/Embed",
    ],
)
def test_unadvertised_rpcs(engine, name):
    """RPCs of profiles that are not advertised are UNIMPLEMENTED."""
    request = METHODS[name].request()
    assert engine.call(name, request).code is grpc.StatusCode.UNIMPLEMENTED
