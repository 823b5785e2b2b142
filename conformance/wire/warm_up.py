"""A few plain calls before the first check: they show how fast the target is, and which token ids
it uses.

Nothing here judges the target: whatever fails leaves the default in place, and a check will say
what is wrong.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import Message

from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.detect import CAPABILITIES, GENERATE, SERVER_INFO
from conformance.wire.pace import Pace
from conformance.wire.transcript import Origin, Transcript
from oe_wire import v1
from oe_wire.services import Method

# Seconds that one call may take: a first request may have to compile kernels.
LIMIT = 60.0
_LEAST = 0.01
TOKENS = 16
PROMPT = "The quick brown fox"
# Small ids exist in every vocabulary.
PROMPT_IDS = (1, 2, 3, 4)


def warm_up(
    connection: Connection, declared: Declared, slow_factor: float, seconds: float | None = None
) -> tuple[Pace, tuple[int, ...]]:
    """The target's pace, and the token ids seen in its output in ascending order.

    An engine that cannot generate, or fails to, gives the default figures and no ids. seconds:
    what all calls together may take, None = LIMIT for each, widened for those that generate.
    """
    default = Pace()
    clock = _Clock(slow_factor, None if seconds is None else time.monotonic() + seconds)
    unary = _unary_seconds(connection, declared, clock)
    transcript = _generate(connection, declared, clock)
    first_token, per_token, known = default.first_token, default.per_token, set[int]()
    if transcript is not None:
        arrivals = list(_arrivals(transcript))
        known = {token for _, tokens in arrivals for token in tokens}
        if arrivals:
            first_token, per_token = _token_seconds(arrivals, default)
    pace = Pace(
        unary=default.unary if unary is None else unary,
        first_token=first_token,
        per_token=per_token,
        slow_factor=max(1.0, slow_factor),
    )
    return pace, tuple(sorted(known))


@dataclass(frozen=True, slots=True)
class _Clock:
    slow_factor: float
    end: float | None

    def unary(self) -> float:
        """Seconds that the next call without generation may take."""
        return self._within(LIMIT)

    def generate(self) -> float:
        """Seconds that the next generation may take."""
        return self._within(LIMIT * self.slow_factor)

    def _within(self, seconds: float) -> float:
        if self.end is None:
            return seconds
        return max(_LEAST, min(seconds, self.end - time.monotonic()))


def _unary_seconds(connection: Connection, declared: Declared, clock: _Clock) -> float | None:
    """The slower of two calls after one that opens the connection; None when one fails."""
    method, request = _unary(declared)
    seconds = []
    for _ in range(3):
        ending = connection.call(method, request, deadline=clock.unary()).ending
        if not ending.ok:
            return None
        seconds.append(ending.seconds)
    return max(seconds[1:])


def _unary(declared: Declared) -> tuple[Method, Message]:
    """A unary RPC that this target answered during detection."""
    if declared.legacy:
        return SERVER_INFO, v1.GetServerInfoRequest()
    return CAPABILITIES, v1.GetCapabilitiesRequest()


def _generate(connection: Connection, declared: Declared, clock: _Clock) -> Transcript | None:
    """A short greedy generation that went well, with ignore_eos where the engine takes it."""
    if not declared.generates:
        return None
    for ignore_eos in (True, False):
        request = _request(declared)
        if ignore_eos:
            request.stopping.ignore_eos = True
        # Twice: the first request pays for what is made only once, the second shows the pace.
        first = connection.call(GENERATE, request, deadline=clock.generate())
        if first.ending.origin is Origin.LOCAL:
            return None
        request.request_id = _fresh_id()
        transcript = connection.call(GENERATE, request, deadline=clock.generate())
        if transcript.ending.ok and any(True for _ in _arrivals(transcript)):
            return transcript
    return None


def _request(declared: Declared) -> v1.GenerateRequest:
    request = v1.GenerateRequest(
        request_id=_fresh_id(),
        model=declared.model_name,
        sampling=v1.SamplingParams(temperature=0.0),
        stopping=v1.StoppingOptions(max_tokens=TOKENS),
    )
    model = declared.model
    if model is not None and model.supports_token_ids_input and not model.supports_text_input:
        request.token_ids.ids.extend(PROMPT_IDS)
    else:
        request.prompt = PROMPT
    return request


def _arrivals(transcript: Transcript) -> Iterator[tuple[float, list[int]]]:
    """Time and token ids of every event that brought tokens."""
    for event in transcript.events:
        message = event.message
        if isinstance(message, v1.GenerateResponse) and message.token.tokens:
            yield event.seconds, [token.token_id for token in message.token.tokens]


def _token_seconds(arrivals: list[tuple[float, list[int]]], default: Pace) -> tuple[float, float]:
    """Seconds to the first token, and per token after the first event."""
    first, last = arrivals[0][0], arrivals[-1][0]
    later = sum(len(tokens) for _, tokens in arrivals[1:])
    # Everything in one event: the whole time is an upper bound for both figures.
    return first, ((last - first) / later if later else min(default.per_token, first))


def _fresh_id() -> str:
    return f"oe-warm-up-{secrets.token_hex(8)}"
