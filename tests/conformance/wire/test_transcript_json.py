from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import ConfigError
from conformance.wire.transcript import (
    Action,
    ActionKind,
    Ending,
    Event,
    Metadata,
    Origin,
    Transcript,
)
from conformance.wire.transcript_json import from_line, read_lines, read_transcripts, to_line
from oe_wire import v1

GENERATE = "openengine.v1.Inference/Generate"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
times = st.floats(min_value=0, max_value=1e6)
doubles = st.floats(allow_nan=False)


@st.composite
def requests(draw: st.DrawFn) -> v1.GenerateRequest:
    request = v1.GenerateRequest(request_id=draw(texts), prompt=draw(texts))
    request.sampling.temperature = draw(doubles)
    if draw(st.booleans()):
        request.token_ids.ids.extend(draw(st.lists(st.integers(0, 2**32 - 1), max_size=3)))
        request.sampling.seed = draw(st.integers(0, 2**64 - 1))
        request.extra.update({"k": draw(texts), "n": [draw(st.floats(-1e9, 1e9)), None, True]})
    return request


@st.composite
def responses(draw: st.DrawFn) -> v1.GenerateResponse:
    info = v1.TokenInfo(token_id=draw(st.integers(0, 2**32 - 1)), logprob=draw(doubles))
    return draw(
        st.sampled_from(
            [
                v1.GenerateResponse(request_id=draw(texts)),
                v1.GenerateResponse(token=v1.TokenOutput(tokens=[info], text=draw(texts))),
                v1.GenerateResponse(finished=v1.GenerationFinished(reason=99)),
                v1.GenerateResponse.FromString(b"\xf2\x07\x03new"),
            ]
        )
    )


metadata = st.lists(
    st.one_of(st.tuples(texts, texts), st.tuples(texts, st.binary(max_size=4))), max_size=3
).map(tuple)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    request = draw(requests())
    moments = sorted(draw(st.lists(times, max_size=4)))
    return Transcript(
        method=GENERATE,
        request=request,
        request_bytes=request.SerializeToString(),
        metadata=draw(metadata),
        events=tuple(Event(seconds, draw(responses())) for seconds in moments),
        ending=Ending(
            draw(times),
            draw(st.sampled_from(list(grpc.StatusCode))),
            draw(texts),
            draw(st.sampled_from(list(Origin))),
            draw(metadata),
        ),
        actions=tuple(
            Action(draw(times), draw(st.sampled_from(list(ActionKind))))
            for _ in range(draw(st.integers(0, 2)))
        ),
        deadline=draw(st.none() | times),
    )


@settings(deadline=None)
@given(transcripts())
def test_round_trip_is_exact(transcript: Transcript) -> None:
    """Writing and reading gives the same transcript, unknown fields included, on one line."""
    line = to_line(transcript)
    assert "\n" not in line
    assert from_line(line) == transcript


@settings(deadline=None)
@given(transcripts())
def test_round_trip_without_bytes(transcript: Transcript) -> None:
    """Without bytes everything but unknown fields survives."""
    line = to_line(transcript, exact=False)
    assert "bytes" not in json.loads(line)
    read = from_line(line)
    assert read.request == transcript.request
    for message in transcript.messages:
        message.DiscardUnknownFields()
    assert read.messages == transcript.messages
    assert (read.ending, read.actions) == (transcript.ending, transcript.actions)


def transcript_of(request: Message | None, data: bytes) -> Transcript:
    ending = Ending(0.0, grpc.StatusCode.OK, "", Origin.REMOTE)
    return Transcript(GENERATE, request, data, (), (), ending)


def test_malformed_request_is_kept_as_bytes() -> None:
    """A request that does not parse is stored as bytes alone, even when bytes are not asked for."""
    transcript = transcript_of(None, b"\x0a\xff")
    line = to_line(transcript, exact=False)
    assert "request" not in json.loads(line)
    assert from_line(line) == transcript


def test_what_json_cannot_say_is_kept_as_bytes() -> None:
    """NaN inside a Struct has no protobuf JSON; the bytes stand in for it."""
    request = v1.GenerateRequest(request_id="r")
    request.extra.fields["n"].number_value = float("nan")
    transcript = transcript_of(request, request.SerializeToString())
    stored = json.loads(to_line(transcript, exact=False))
    assert "request" not in stored
    assert from_line(json.dumps(stored)).request_bytes == transcript.request_bytes


def test_nan_in_a_double() -> None:
    """NaN in a plain field is valid JSON text and comes back."""
    request = v1.GenerateRequest(sampling=v1.SamplingParams(temperature=float("nan")))
    line = to_line(transcript_of(request, request.SerializeToString()), exact=False)
    read = from_line(line).request
    assert isinstance(read, v1.GenerateRequest)
    assert read.sampling.temperature != read.sampling.temperature


def by_hand() -> dict[str, Any]:
    """The shortest recording that is allowed."""
    return {
        "method": GENERATE,
        "request": {"request_id": "r", "prompt": "p"},
        "events": [{"message": {"token": {"text": "x"}}}, {"message": {}, "seconds": 2}],
        "status": "OK",
    }


def test_recording_made_by_hand() -> None:
    """Four keys are enough; the rest has quiet defaults."""
    transcript = from_line(json.dumps(by_hand()))
    assert transcript.request == v1.GenerateRequest(request_id="r", prompt="p")
    assert transcript.request_bytes == v1.GenerateRequest(
        request_id="r", prompt="p"
    ).SerializeToString(deterministic=True)
    assert [event.seconds for event in transcript.events] == [0.0, 2.0]
    assert transcript.ending == Ending(2.0, grpc.StatusCode.OK, "", Origin.REMOTE)
    assert transcript.undisturbed
    assert transcript.deadline is None
    assert transcript.metadata == Metadata()


def put(path: list[Any], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(stored: dict[str, Any]) -> None:
        place: Any = stored
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda stored: stored.pop("method"), "'method': missing"),
        (lambda stored: stored.pop("request"), "'request': missing"),
        (lambda stored: stored.pop("events"), "'events': missing"),
        (lambda stored: stored.pop("status"), "'status': missing"),
        (put(["method"], 5), "'method': int instead of text"),
        (put(["method"], "openengine.v1.Inference/Generat"), "unknown method"),
        (put(["extra"], 1), "'extra': unknown key"),
        (put(["request"], []), "'request': list instead of an object"),
        (put(["request"], {"promt": "x"}), "'request': .*promt"),
        (put(["request_bytes"], "?"), "'request_bytes': not base64"),
        (put(["events"], {}), "'events': dict instead of a list"),
        (put(["events", 1], None), r"'events\[1\]': null instead of an object"),
        (put(["events", 1], {}), r"'events\[1\].message': missing"),
        (put(["events", 1, "message"], {"finished": 1}), r"'events\[1\].message': "),
        (put(["events", 1, "bytes"], "Cv8="), r"'events\[1\].bytes': not a openengine.v1.Gen"),
        (put(["events", 1, "at"], 1), r"'events\[1\].at': unknown key"),
        (put(["events", 1, "seconds"], -1), r"'events\[1\].seconds': -1 is not a time"),
        (put(["events", 1, "seconds"], [1]), "is not a time"),
        (put(["events", 0, "seconds"], 3), r"'events\[1\].seconds': 2.0 is before 3.0"),
        (put(["status"], "FINE"), "'status.code': unknown status 'FINE'"),
        (put(["status"], {}), "'status.code': unknown status None"),
        (put(["status"], 0), "'status': int instead of an object"),
        (put(["status"], {"code": "OK", "origin": "here"}), "'status.origin': .*remote, local"),
        (put(["status"], {"code": "OK", "trailers": [["k"]]}), r"'status.trailers\[0\]': not a"),
        (put(["metadata"], [["k", 1]]), r"'metadata\[0\]': int instead of text"),
        (put(["metadata"], [["k", {}]]), r"'metadata\[0\]': null instead of text"),
        (put(["actions"], [{"kind": "shout"}]), r"'actions\[0\].kind': unknown value 'shout'"),
        (put(["deadline"], "5"), "'deadline': '5' is not a time"),
    ],
)
def test_errors_name_line_and_key(change: Callable[[dict[str, Any]], Any], says: str) -> None:
    """Whatever is wrong with a recording, the error says in which line and at which key."""
    stored = by_hand()
    change(stored)
    with pytest.raises(ConfigError, match=says) as caught:
        from_line(json.dumps(stored), source="calls.jsonl", number=7)
    assert str(caught.value).startswith("calls.jsonl: line 7")
    assert "; expected " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["{", "nonsense", "[]", "5", "[" * 100_000])
def test_lines_that_are_no_object(line: str) -> None:
    """Text that is not a JSON object is refused by line number."""
    with pytest.raises(ConfigError, match="line 3"):
        from_line(line, number=3)


def test_file(tmp_path: Path) -> None:
    """Empty lines are skipped, line numbers count them, odd line separators stay text."""
    stored = by_hand()
    stored["request"]["prompt"] = "a\u2028b"
    line = json.dumps(stored, ensure_ascii=False)
    path = tmp_path / "calls.jsonl"
    path.write_text(f"{line}\n\n{line}\n", encoding="utf-8")
    read = list(read_transcripts(path))
    assert [number for number, _ in read] == [1, 3]
    assert read[0][1] == read[1][1]
    assert [number for number, _ in read_lines([line])] == [1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read it"),
        (b"", "no transcript"),
        (b"\n\n", "no transcript"),
        (b"\xff\xfe", "not UTF-8"),
        (b"\n{}\n", "line 2"),
    ],
)
def test_unusable_files(tmp_path: Path, content: bytes | None, says: str) -> None:
    """Files that hold no recording are refused by name."""
    path = tmp_path / "calls.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=says) as caught:
        list(read_transcripts(path))
    assert str(caught.value).startswith(str(path))
