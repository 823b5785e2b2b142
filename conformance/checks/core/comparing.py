"""Whether two calls brought the same outputs."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.checks.core.judging import DISTURBED, engine_errors
from conformance.checks.probe import Probe, describe
from conformance.laws.stream import outputs, succeeded
from conformance.model.case import Case
from conformance.wire.transcript import Transcript
from oe_wire import v1


@dataclass(frozen=True, slots=True)
class Result:
    """What one output is made of: token ids, text, reason of its end and the match named there."""

    tokens: tuple[int, ...]
    text: str
    reason: int
    match: bytes


def repeatable(request: v1.GenerateRequest) -> bool:
    """Whether an engine that repeats itself at all answers the request the same way twice."""
    sampling = request.sampling
    return sampling.HasField("seed") or (
        sampling.HasField("temperature") and sampling.temperature == 0
    )


def results(transcript: Transcript) -> tuple[Result, ...]:
    """The outputs of a stream in order of their index, however they were cut into messages."""
    found = []
    for output in outputs(transcript).values():
        finished = output.finish.finished if output.finish else v1.GenerationFinished()
        tokens = tuple(record.info.token_id for record in output.records)
        match = finished.stop_match.SerializeToString(deterministic=True)
        found.append(Result(tokens, output.text, finished.reason, match))
    return tuple(found)


def difference(one: Transcript, other: Transcript) -> str | None:
    """What differs first, without any content; None when the outputs are the same."""
    left, right = results(one), results(other)
    if len(left) != len(right):
        return f"{len(left)} outputs and {len(right)}"
    for index, (mine, theirs) in enumerate(zip(left, right, strict=True)):
        where = f"output {index}"
        if mine.tokens != theirs.tokens:
            same = next(
                (
                    at
                    for at, (a, b) in enumerate(zip(mine.tokens, theirs.tokens, strict=False))
                    if a != b
                ),
                min(len(mine.tokens), len(theirs.tokens)),
            )
            return f"{where} from token {same} on"
        if mine.text != theirs.text:
            return f"the text of {where}"
        if (mine.reason, mine.match) != (theirs.reason, theirs.match):
            return f"the end of {where}"
    return None


def ended_well(probe: Probe, case: Case) -> Transcript:
    """Send a valid request; whatever else than a full answer is a skip."""
    transcript = probe.generate(case)
    if any(error.code in DISTURBED for _, error in engine_errors(transcript)):
        probe.skip("the request was disturbed")
    if not succeeded(transcript):
        probe.skip(f"the request did not end well: {describe(transcript)}")
    return transcript
