"""Generate over real gRPC: streams that succeed."""

import math

import grpc
import pytest

from oe_wire import v1
from tests.reference_engine.engine.fakes import EOS, VOCABULARY
from tests.reference_engine.server.running import WINDOW, fresh_id, generate_request

Sampling = v1.SamplingParams
Stopping = v1.StoppingOptions
Response = v1.ResponseOptions
Candidates = v1.CandidateTokenSelection


def check_stream(request, outcome):
    """What holds for every successful stream."""
    assert outcome.code is grpc.StatusCode.OK, outcome.details
    sequences = request.sampling.num_sequences or 1
    assert {message.request_id for message in outcome.messages} == {request.request_id}
    assert sorted(end.output_index for end in outcome.ends()) == list(range(sequences))
    assert [m.HasField("usage") for m in outcome.messages].index(True) == len(outcome.messages) - 1
    usage = outcome.messages[-1].usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    ended = set()
    for message in outcome.messages:
        kind = message.WhichOneof("event")
        assert kind in {"prompt", "token", "finished"}
        if kind != "prompt":
            event = getattr(message, kind)
            assert event.HasField("output_index")
            assert event.output_index not in ended
            if kind == "finished":
                ended.add(event.output_index)
                stopped = event.reason == v1.FINISH_REASON_STOP
                assert event.HasField("stop_match") == stopped


def test_greedy_is_repeatable(engine):
    """Two equal greedy requests give equal streams; the alias names the same model."""
    first, second = generate_request(), generate_request(model="default")
    outcomes = [engine.generate(first), engine.generate(second)]
    check_stream(first, outcomes[0])
    check_stream(second, outcomes[1])
    ids = [[record.token_id for record in outcome.records()] for outcome in outcomes]
    assert ids[0] == ids[1]
    assert outcomes[0].messages[-1].usage.prompt_tokens == 3


def test_text_and_token_ids_are_the_same_prompt(engine):
    """A prompt as text or as its ids gives the same output."""
    by_text = engine.generate(generate_request("hello"))
    by_ids = engine.generate(generate_request(list(b"hello")))
    assert by_text.text() == by_ids.text()
    assert len(by_ids.records()) == 8
    assert by_ids.messages[-1].usage.prompt_tokens == 5


def test_three_sequences(engine):
    """n=3 gives three outputs and one usage over all of them."""
    request = generate_request(sampling=Sampling(num_sequences=3, temperature=1.0, seed=0))
    request.stopping.ignore_eos = True
    outcome = engine.generate(request)
    check_stream(request, outcome)
    assert [len(outcome.records(index)) for index in range(3)] == [8, 8, 8]
    assert outcome.messages[-1].usage.completion_tokens == 24
    assert outcome.messages[-1].usage.prompt_tokens == 3


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_seed(engine, seed):
    """A present seed, 0 included, makes two sampled requests equal."""
    sampling = Sampling(temperature=1.5, seed=seed)
    outcomes = [engine.generate(generate_request(sampling=sampling)) for _ in range(2)]
    ids = [[record.token_id for record in outcome.records()] for outcome in outcomes]
    assert ids[0] == ids[1]


def test_without_seed_outputs_differ(engine):
    """Without a seed, equal sampled requests draw anew."""
    sampling = Sampling(temperature=1.5)
    outcomes = [engine.generate(generate_request(sampling=sampling)) for _ in range(4)]
    assert len({outcome.text() for outcome in outcomes}) > 1


def test_id_is_echoed_and_reusable(engine):
    """The longest id, of any printable text, comes back byte for byte and can be used again."""
    request_id = "é漢 " * 42 + "1234"
    assert len(request_id.encode()) == 256
    request = generate_request()
    request.request_id = request_id
    for _ in range(3):
        check_stream(request, engine.generate(request))


def test_output_logprobs(engine):
    """Each record has a finite log probability, its rank, and the asked candidates."""
    response = Response(return_output_logprobs=True, output_candidates=Candidates(top_n=4))
    request = generate_request(response=response)
    outcome = engine.generate(request)
    check_stream(request, outcome)
    for record in outcome.records():
        assert math.isfinite(record.logprob)
        assert record.logprob <= 0
        assert record.rank == 1
        assert [candidate.rank for candidate in record.candidates] == [1, 2, 3, 4]
        assert record.candidates[0].token_id == record.token_id
        assert record.candidates[0].logprob == record.logprob


def test_candidates_by_id_and_all(engine):
    """`token_ids` gives exactly these, `all` gives the vocabulary with unique ranks."""
    asked = v1.TokenIds(ids=[5, 200, 5, 7])
    response = Response(return_output_logprobs=True, output_candidates=Candidates(token_ids=asked))
    outcome = engine.generate(generate_request(response=response))
    for record in outcome.records():
        assert [candidate.token_id for candidate in record.candidates] == [5, 200, 7]
    response.output_candidates.all.SetInParent()
    outcome = engine.generate(generate_request(response=response))
    for record in outcome.records():
        assert [c.rank for c in record.candidates] == list(range(1, VOCABULARY + 1))
        assert len({c.token_id for c in record.candidates}) == VOCABULARY


def test_no_scores_unless_asked(engine):
    """Without return_output_logprobs no record has a logprob, a rank or candidates."""
    for record in engine.generate(generate_request()).records():
        assert not record.HasField("logprob")
        assert not record.HasField("rank")
        assert not record.candidates


@pytest.mark.parametrize("start", [0, 2, 5])
def test_prompt_logprobs(engine, start):
    """One record per prompt token from the start on; the first token of the prompt is bare."""
    response = Response(
        return_prompt_logprobs=True,
        prompt_logprob_start=start,
        prompt_candidates=Candidates(top_n=2),
    )
    request = generate_request("hello", response=response, sampling=Sampling(num_sequences=2))
    outcome = engine.generate(request)
    check_stream(request, outcome)
    assert outcome.messages[0].WhichOneof("event") == "prompt"
    records = outcome.messages[0].prompt.tokens
    assert [record.token_id for record in records] == list(b"hello"[start:])
    for position, record in enumerate(records, start):
        assert record.HasField("logprob") == record.HasField("rank") == (position > 0)
        assert len(record.candidates) == (2 if position else 0)


def test_all_prompt_candidates(engine):
    """A long prompt with every candidate gives one complete row per token, in order."""
    response = Response(
        return_prompt_logprobs=True, prompt_candidates=Candidates(all=v1.AllCandidates())
    )
    prompt = "hello world " * 5
    request = generate_request(prompt, response=response)
    outcome = engine.generate(request)
    check_stream(request, outcome)
    records = outcome.messages[0].prompt.tokens
    assert bytes(record.token_id for record in records).decode() == prompt
    for record in records[1:]:
        assert [one.rank for one in record.candidates] == list(range(1, VOCABULARY + 1))
        assert math.isclose(
            sum(math.exp(one.logprob) for one in record.candidates), 1, abs_tol=1e-3
        )


def test_stop_conditions(engine):
    """The match names the condition; the stop is left out, or is the last output."""
    plain = engine.generate(generate_request())
    stop_id = plain.records()[4].token_id
    first = [record.token_id for record in plain.records()].index(stop_id)
    for include in (False, True):
        stopping = Stopping(
            conditions=[v1.StopCondition(stop_token_id=stop_id)], include_stop_in_output=include
        )
        request = generate_request(stopping=stopping)
        outcome = engine.generate(request)
        check_stream(request, outcome)
        assert outcome.ends()[0].stop_match.stop_token_id == stop_id
        assert len(outcome.records()) == first + include
        assert outcome.messages[-1].usage.completion_tokens == first + 1


def test_min_tokens_and_ignore_eos(engine):
    """Neither ends early, and EOS is never sent under ignore_eos."""
    sampling = Sampling(temperature=3.0, seed=3)
    stopping = Stopping(max_tokens=100, min_tokens=100)
    assert (
        len(engine.generate(generate_request(sampling=sampling, stopping=stopping)).records())
        == 100
    )
    stopping = Stopping(max_tokens=150, ignore_eos=True)
    records = engine.generate(generate_request(sampling=sampling, stopping=stopping)).records()
    assert len(records) == 150
    assert EOS not in {record.token_id for record in records}


def test_window(engine):
    """Prompt and limit beyond the window end with LENGTH at the window."""
    request = generate_request(
        "x" * (WINDOW - 6), stopping=Stopping(max_tokens=WINDOW, ignore_eos=True)
    )
    outcome = engine.generate(request)
    check_stream(request, outcome)
    assert outcome.ends()[0].reason == v1.FINISH_REASON_LENGTH
    assert outcome.messages[-1].usage.completion_tokens == 6


def test_explicit_defaults_and_extras_are_accepted(engine):
    """Explicit false, an empty kv, unknown extra keys and unknown fields change nothing."""
    plain = engine.generate(generate_request())
    request = generate_request(
        kv=v1.KvOptions(bypass_prefix_cache=False),
        stopping=Stopping(ignore_eos=False, include_stop_in_output=False),
        extra={"vendor.key": 1, "other": {"nested": [True, None]}},
    )
    # Field 200 as a varint: unknown to this schema.
    request.MergeFromString(bytes((0xC0, 0x0C, 0x01)))
    outcome = engine.generate(request)
    check_stream(request, outcome)
    assert outcome.text() == plain.text()


@pytest.mark.parametrize(
    "metadata",
    [
        [("openengine-priority", "-3")],
        [("openengine-target-dp-rank", "0")],
        [("openengine-routing-key", "any thing")],
        [("openengine-unknown", "x")],
        [("traceparent", "ff-0-0-0")],
        [("traceparent", "00-" + "a" * 32 + "-" + "b" * 16 + "-01")] * 2,
        [("tracestate", "=,=,")],
        [("x-vendor", "1"), ("x-vendor", "2"), ("data-bin", b"\xff")],
    ],
)
def test_metadata_that_changes_nothing(engine, metadata):
    """Hints, unknown keys and bad trace context never fail a request."""
    request = generate_request()
    check_stream(request, engine.generate(request, metadata=metadata))


def test_two_streams_share_the_engine(engine):
    """Requests that run together give what they give alone."""
    requests = [generate_request(f"prompt {number}") for number in range(8)]
    calls = [engine.start_generate(request) for request in requests]
    together = ["".join(m.token.text for m in call) for call in calls]
    for request, text in zip(requests, together, strict=True):
        request.request_id = fresh_id()
        assert engine.generate(request).text() == text
