"""What happened on one Generate call, sorted by output.

Readers for laws and checks; nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from conformance.wire.remember import remembered
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1


@dataclass(frozen=True, slots=True)
class Delta:
    """One TokenOutput; `event` is its position in the transcript, from 0."""

    event: int
    token: v1.TokenOutput


@dataclass(frozen=True, slots=True)
class Record:
    """One TokenInfo; `position` counts the records of its output (or prompt) from 0."""

    event: int
    position: int
    info: v1.TokenInfo


@dataclass(frozen=True, slots=True)
class Finish:
    """One GenerationFinished."""

    event: int
    finished: v1.GenerationFinished

    @property
    def match(self) -> str | None:
        """The variant of stop_match that is set, None when there is none."""
        return self.finished.stop_match.WhichOneof("match")


@dataclass(frozen=True, slots=True)
class Output:
    """Everything that arrived for one output index, in order of arrival."""

    index: int
    deltas: tuple[Delta, ...]
    finishes: tuple[Finish, ...]

    @property
    def records(self) -> tuple[Record, ...]:
        """All token records."""
        infos = ((delta.event, info) for delta in self.deltas for info in delta.token.tokens)
        return tuple(Record(event, at, info) for at, (event, info) in enumerate(infos))

    @property
    def text(self) -> str:
        """The text of all deltas, joined."""
        return "".join(delta.token.text for delta in self.deltas)

    @property
    def finish(self) -> Finish | None:
        """The first terminal event of this index."""
        return self.finishes[0] if self.finishes else None


def request_of(transcript: Transcript) -> v1.GenerateRequest | None:
    """The request, None when the bytes sent were no GenerateRequest."""
    request = transcript.request
    return request if isinstance(request, v1.GenerateRequest) else None


def sequences(request: v1.GenerateRequest) -> int:
    """How many outputs were asked for: 1 when absent, and for the invalid zero."""
    sampling = request.sampling
    return max(1, sampling.num_sequences) if sampling.HasField("num_sequences") else 1


@remembered
def responses(transcript: Transcript) -> tuple[tuple[int, v1.GenerateResponse], ...]:
    """Every GenerateResponse with its position in the transcript."""
    return tuple(
        (at, message)
        for at, message in enumerate(transcript.messages)
        if isinstance(message, v1.GenerateResponse)
    )


def has_unknown(message: Message) -> bool:
    """Whether `message` carries fields that this revision of the wire does not know."""
    return len(UnknownFieldSet(message)) > 0


def output_index(response: v1.GenerateResponse) -> int | None:
    """The output that a response speaks of; None for events of the whole request.

    A missing output_index reads as 0: that it must be present is one law's business.
    """
    if response.HasField("token"):
        return response.token.output_index
    if response.HasField("finished"):
        return response.finished.output_index
    return None


@remembered
def outputs(transcript: Transcript) -> Mapping[int, Output]:
    """The outputs for which something arrived, by index, lowest index first."""
    deltas: dict[int, list[Delta]] = {}
    finishes: dict[int, list[Finish]] = {}
    for at, response in responses(transcript):
        if response.HasField("token"):
            deltas.setdefault(response.token.output_index, []).append(Delta(at, response.token))
        elif response.HasField("finished"):
            finish = Finish(at, response.finished)
            finishes.setdefault(response.finished.output_index, []).append(finish)
    return {
        index: Output(index, tuple(deltas.get(index, ())), tuple(finishes.get(index, ())))
        for index in sorted(deltas.keys() | finishes.keys())
    }


def output_records(transcript: Transcript) -> Iterator[tuple[int, Record]]:
    """Every token record of every output, as (output index, record)."""
    for output in outputs(transcript).values():
        for record in output.records:
            yield output.index, record


def finishes(transcript: Transcript) -> Iterator[tuple[Output, Finish]]:
    """The first terminal event of every index that has one."""
    for output in outputs(transcript).values():
        if output.finish is not None:
            yield output, output.finish


@remembered
def prompts(transcript: Transcript) -> tuple[tuple[int, v1.PromptOutput], ...]:
    """Every PromptOutput with its position."""
    return tuple((at, r.prompt) for at, r in responses(transcript) if r.HasField("prompt"))


@remembered
def errors(transcript: Transcript) -> tuple[tuple[int, v1.EngineError], ...]:
    """Every EngineError with its position."""
    return tuple((at, r.error) for at, r in responses(transcript) if r.HasField("error"))


def handed_off(transcript: Transcript) -> bool:
    """Whether a PrefillReady arrived: the other terminal event of a request."""
    return any(response.HasField("prefill_ready") for _, response in responses(transcript))


@remembered
def usages(transcript: Transcript) -> tuple[tuple[int, v1.Usage], ...]:
    """Every usage with its position."""
    return tuple((at, r.usage) for at, r in responses(transcript) if r.HasField("usage"))


def final_usage(transcript: Transcript) -> tuple[int, v1.Usage] | None:
    """The usage of the last response with its position; None when that carries none."""
    last = responses(transcript)[-1:]
    return (last[0][0], last[0][1].usage) if last and last[0][1].HasField("usage") else None


@remembered
def end_of_stream(transcript: Transcript) -> int | None:
    """Position of the event after which nothing may follow; None when it did not arrive.

    That is an EngineError, a PrefillReady, or the terminal event of the last open index.
    """
    request = request_of(transcript)
    still_open = None if request is None else set(range(sequences(request)))
    for at, response in responses(transcript):
        if response.HasField("error") or response.HasField("prefill_ready"):
            return at
        if still_open is not None and response.HasField("finished"):
            still_open.discard(response.finished.output_index)
            if not still_open:
                return at
    return None


def ended_by_engine(transcript: Transcript) -> bool:
    """Whether the engine closed the stream with OK, after an Abort from aside or without.

    Everything the engine had to say arrived then, unlike on a call that the client cancelled.
    """
    cut = transcript.acted(ActionKind.CANCEL) or transcript.acted(ActionKind.DEADLINE)
    return transcript.ending.ok and not cut


def complete(transcript: Transcript) -> bool:
    """Whether the call ran to an OK end without any interference of the client."""
    return transcript.undisturbed and transcript.ending.ok


def succeeded(transcript: Transcript) -> bool:
    """Whether the call ran undisturbed to its end and no EngineError came."""
    return complete(transcript) and not errors(transcript)
