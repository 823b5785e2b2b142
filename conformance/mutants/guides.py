"""Mutants of guided decoding, and of the characters that outputs are made of."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import edited, forgiven, repaired, when
from conformance.mutants.methods import BOTH_MODEL_INFOS, CAPABILITIES, GENERATE, each
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant
from conformance.oracle.guides import Quality, quality
from oe_wire import v1

REGEX = v1.GUIDED_DECODING_MODE_REGEX
SOME_EOS = 2


def _kind(request: Any) -> str:
    return str(request.guided.WhichOneof("guide") or "")


def _drop_guide(request: Any) -> None:
    request.ClearField("guided")


def _missing(request: Any) -> bool:
    return bool(request.HasField("guided") and not _kind(request))


def _malformed(request: Any) -> bool:
    return quality(request.guided) is Quality.MALFORMED


def _silent_regex(message: Any) -> None:
    """ModelInfo and Capabilities without the mode."""
    modes = message.generation.guided_decoding.modes
    if REGEX in modes:
        modes.remove(REGEX)


def _without_regex(generate: Behaviour | None) -> dict[str, Behaviour]:
    told = each((*BOTH_MODEL_INFOS, CAPABILITIES), edited(_silent_regex))
    return told if generate is None else {**told, GENERATE: generate}


async def _internal_error(exchange: Exchange) -> Answers:
    """What the compiler raised comes out of the stream as a failure of the engine."""
    error = v1.EngineError(code=v1.ERROR_CODE_INTERNAL, message="compilation raised")
    yield v1.GenerateResponse(request_id=exchange.request.request_id, error=error)


async def _free_but_complete(exchange: Exchange) -> Answers:
    """The guide is lost, and what comes instead is reported as a complete answer."""
    exchange.request.ClearField("guided")
    async for response in exchange.upstream():
        if response.finished.reason == v1.FINISH_REASON_LENGTH:
            response.finished.reason = v1.FINISH_REASON_STOP
            response.finished.stop_match.eos_token_id = SOME_EOS
        yield response


async def _first_letter_lost(exchange: Exchange) -> Answers:
    """The first letter of the text is taken for a word mark and cut off."""
    cut: set[int] = set()
    async for response in exchange.upstream():
        token = response.token
        if response.HasField("token") and token.text and token.output_index not in cut:
            cut.add(token.output_index)
            token.text = token.text[1:]
        yield response


def _guided_and_plain(request: Any) -> bool:
    """Not what must be refused, and nothing that ends the output besides the guide."""
    return bool(_kind(request)) and not _malformed(request) and not request.stopping.conditions


def _torn(response: Any) -> None:
    """Each byte of a character is decoded by itself."""
    if response.HasField("token"):
        response.token.text = "".join(
            letter if letter.isascii() else "\ufffd" * len(letter.encode())
            for letter in response.token.text
        )


MUTANTS = (
    Mutant(
        "guide-missing-ignored",
        "OE-CORE-GEN-023",
        "A GuidedDecoding without a guide is read like none at all.",
        {GENERATE: when(_missing, repaired(_drop_guide))},
    ),
    Mutant(
        "unlisted-guide-ignored",
        "OE-CORE-GEN-023",
        "A backend without regular expressions lets the request through and generates freely.",
        _without_regex(when(lambda request: _kind(request) == "regex", repaired(_drop_guide))),
    ),
    Mutant(
        "listed-guide-forgotten",
        "OE-CORE-GEN-023",
        "A mode was added to the engine and not to its description.",
        _without_regex(None),
    ),
    Mutant(
        "malformed-guide-blamed-on-engine",
        "OE-CORE-GEN-024",
        "The guide is compiled in the engine, and its exception becomes EngineError INTERNAL.",
        {GENERATE: when(_malformed, forgiven(grpc.StatusCode.INVALID_ARGUMENT, _internal_error))},
    ),
    Mutant(
        "malformed-guide-ignored",
        "OE-CORE-GEN-024",
        "When a guide does not compile the request is generated without one.",
        {GENERATE: when(_malformed, repaired(_drop_guide))},
    ),
    Mutant(
        "characters-torn",
        "OE-CORE-STREAM-025",
        "Every token is decoded by itself, so that a character of several tokens never appears.",
        {GENERATE: edited(_torn)},
        # The text of the guide is not the text that the guide allows.
        frozenset({"OE-CORE-STREAM-026"}),
    ),
    Mutant(
        "guide-lost",
        "OE-CORE-STREAM-026",
        "The grammar is dropped on the way to the sampler.",
        {GENERATE: when(_guided_and_plain, _free_but_complete)},
    ),
    Mutant(
        "guided-first-letter-lost",
        "OE-CORE-STREAM-026",
        "The detokenizer strips the first character of an output.",
        {GENERATE: when(_guided_and_plain, _first_letter_lost)},
    ),
)
