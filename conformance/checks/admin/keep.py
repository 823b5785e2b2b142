"""A pause by KEEP: requests stop where they are, and lose nothing by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.checks.admin.admin_calls import RESUME, granted, pause, resumed
from conformance.checks.check import check
from conformance.checks.core.judging import finishes, outcome
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies.simple import ever_longer, long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Tokens of an output that is held in the middle; more where it had ended before the pause began.
KEPT_TOKENS = 64
# Without a message for this long a stream counts as stopped; messages on their way take less.
QUIET_SECONDS = 0.3
# A stream must have stopped within these seconds.
STOP_SECONDS = 5.0


def _kept(declared: Declared) -> Iterable[Case]:
    request = long_request(declared, KEPT_TOKENS)
    request.sampling.temperature = 0.0
    return (Case(request),)


@check(
    "OE-ADM-006",
    table=_kept,
    advice="Keep the state of held requests (blocks, sampled tokens, detokenizer) as it is, and "
    "take them up at the next step after the resume.",
)
def keep_loses_nothing(probe: Probe, case: Case) -> None:
    """A kept request stops, goes on after the resume, and yields what it yields undisturbed."""
    for longer in ever_longer(probe.declared, case):
        held = _held(probe, longer)
        if not (held.over and finishes(held.stream)):
            break
    else:
        probe.skip("the request had finished before the pause")
    if held.over:
        probe.fail("the request held by KEEP", outcome(held.stream), held.stream)
    if not held.stopped:
        probe.fail("no tokens of a held request", "more of them", held.stream)
    if not held.back.ending.ok:
        probe.skip(f"the engine was not resumed: {describe(held.back)}")
    first, second = probe.generate(longer), probe.generate(longer)
    if not finishes(first):
        probe.skip(f"the undisturbed request did not finish: {describe(first)}")
    _same_output(probe, held.stream, first, second)


@dataclass(frozen=True, slots=True)
class Held:
    """A request over a pause by KEEP: whether its messages ceased to come, whether it was over
    before the resume, the resume, and the whole stream.
    """

    stopped: bool
    over: bool
    back: Transcript
    stream: Transcript


def _held(probe: Probe, case: Case) -> Held:
    with resumed(probe):
        live = probe.start_generate(case)
        live.wait_event(2)
        call = pause(probe, v1.PAUSE_MODE_KEEP)
        stopped = _stopped(probe, live)
        over = live.done
        back = probe.call(RESUME, v1.ResumeGenerationRequest())
        stream = probe.finish(live)
    granted(probe, call)
    if stream.rejected:
        probe.skip(f"the request was refused: {describe(stream)}")
    return Held(stopped, over, back, stream)


def _stopped(probe: Probe, live: LiveCall) -> bool:
    """Whether messages cease to come; those on their way when the pause began still do."""
    limit = probe.pace.required(STOP_SECONDS)
    quiet = probe.pace.required(QUIET_SECONDS)

    def silent() -> bool:
        return live.done or not live.wait_event(len(live.events) + 1, timeout=quiet)

    return probe.wait_until(silent, limit)


def _same_output(probe: Probe, stream: Transcript, first: Transcript, second: Transcript) -> None:
    """Equal tokens where the engine repeats itself, else equal numbers of them."""
    if not finishes(stream):
        probe.fail("the held request to finish after the resume", outcome(stream), stream)
    mine, expected = _tokens(stream), _tokens(first)
    if len(mine) != len(expected):
        probe.fail(f"{len(expected)} tokens over the pause", f"{len(mine)}", stream)
    if expected == _tokens(second) and mine != expected:
        probe.fail("the tokens of an undisturbed run", "other tokens", stream)


def _tokens(stream: Transcript) -> list[int]:
    return [
        info.token_id
        for message in stream.messages
        if isinstance(message, v1.GenerateResponse)
        for info in message.token.tokens
    ]
