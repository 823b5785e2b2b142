"""What a check body may do: make calls, wait for conditions, and say what it found.

Every call goes through here, so that it is counted against the budget, recorded, and judged by
all laws whatever the check is about.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import cast

import grpc
from google.protobuf.message import Message

from conformance.checks.base import POLL_SECONDS, BaseProbe, CaseLog, Interrupted, Spending
from conformance.errors import UnreachableError
from conformance.laws import judge
from conformance.laws.errors import BLAMELESS
from conformance.laws.law import GENERATE
from conformance.model.case import FRESH_ID, Case
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.pace import Pace
from conformance.wire.slow_call import SlowCall
from conformance.wire.transcript import Metadata, Origin, Transcript
from oe_wire import v1
from oe_wire.services import METHODS, Method

__all__ = ["POLL_SECONDS", "CaseLog", "Interrupted", "Probe", "Spending", "describe"]


class Probe(BaseProbe[Transcript, Declared]):
    """The hands of one check in one worker.

    declared: what the engine said about itself. pace: time limits. methods: full names of all RPCs
    that the check has called. faulty: a fault is armed on purpose, so a failure of the engine says
    nothing about the request. stop: set when the run ends early; every call then raises
    Interrupted. listener: told every finished call.
    """

    def __init__(
        self,
        requirement: str,
        connection: Connection,
        declared: Declared,
        pace: Pace,
        spending: Spending,
        stop: threading.Event,
        listener: Callable[[Transcript], None] = lambda _: None,
    ) -> None:
        super().__init__(requirement, declared, spending, stop)
        self.connection = connection
        self.pace = pace
        self.faulty = False
        self._listener = listener
        self._live: list[LiveCall] = []

    # Calls

    def call(
        self, name: str, request: Message, *, metadata: Metadata = (), deadline: float | None = None
    ) -> Transcript:
        """Make the call `Service/Rpc` or `package.Service/Rpc` and wait for its end."""
        return self.finish(self.start(name, request, metadata=metadata, deadline=deadline))

    def start(
        self, name: str, request: Message, *, metadata: Metadata = (), deadline: float | None = None
    ) -> LiveCall:
        """Start a call and return while it runs; `finish` must be called on it."""
        method = self._begin(name)
        limit = self.limit(request) if deadline is None else deadline
        live = self.connection.start(method, request, metadata=metadata, deadline=limit)
        self._live.append(live)
        return live

    def start_slow(
        self, name: str, request: Message, *, metadata: Metadata = (), deadline: float | None = None
    ) -> SlowCall:
        """As `start`, for a call whose reader can stop reading; it has to read on, or be
        cancelled, before `finish`.
        """
        method = self._begin(name)
        limit = self.limit(request) if deadline is None else deadline
        live = self.connection.start_slow(method, request, metadata=metadata, deadline=limit)
        self._live.append(live)
        return live

    def _begin(self, name: str) -> Method:
        if self._stop.is_set():
            raise Interrupted
        full_name = name if "." in name else f"openengine.v1.{name}"
        self.spending.requests += 1
        self.methods.add(full_name)
        return METHODS[full_name]

    def finish(self, live: LiveCall) -> Transcript:
        """Wait for the end of a call; record and judge it. Raises UnreachableError when the
        connection failed.
        """
        transcript = live.finish()
        self._live.remove(live)
        self.record(transcript)
        ending = transcript.ending
        if ending.origin is Origin.LOCAL and ending.code is grpc.StatusCode.UNAVAILABLE:
            raise UnreachableError(f"{transcript.method}: connection lost: {ending.details}")
        if self._stop.is_set():
            raise Interrupted
        return transcript

    def record(self, transcript: Transcript) -> None:
        """Count a finished call, keep it, tell of it, and let every law judge it."""
        self._listener(transcript)
        self.spending.tokens += _tokens(transcript)
        self.log.transcripts.append(transcript)
        for requirement, ruling in judge(transcript, self.declared).items():
            if self.faulty and requirement == BLAMELESS:
                continue
            self.log.rulings.setdefault(requirement, []).append((ruling, transcript))

    def generate(self, case: Case, *, deadline: float | None = None) -> Transcript:
        """Send the case's GenerateRequest, under a fresh id where it asks for one, to its end."""
        return self.finish(self.start_generate(case, deadline=deadline))

    def start_generate(self, case: Case, *, deadline: float | None = None) -> LiveCall:
        """Start the case's GenerateRequest; `finish` must be called on the result."""
        request = self.prepared(case)
        return self.start(GENERATE, request, metadata=case.metadata, deadline=deadline)

    def prepared(self, case: Case) -> v1.GenerateRequest:
        """The case's request as it will be sent: FRESH_ID replaced by an unused id."""
        request = v1.GenerateRequest()
        request.CopyFrom(cast(v1.GenerateRequest, case.request))
        if request.request_id == FRESH_ID:
            request.request_id = self.fresh_id()
        return request

    def fresh_id(self) -> str:
        """A request id that no other call uses."""
        return f"oe-{secrets.token_hex(8)}"

    def limit(self, request: Message) -> float:
        """Seconds that a call with this request may take on this target."""
        if isinstance(request, v1.GenerateRequest):
            sequences = max(1, request.sampling.num_sequences)
            tokens = request.stopping.max_tokens if request.stopping.HasField("max_tokens") else 64
            return self.pace.generate_limit(min(tokens, 4096) * min(sequences, 64))
        return self.pace.unary_limit()

    def new_case(self) -> None:
        """Forget the calls of the last case; end what it left running."""
        for live in self._live:
            live.cancel()
            live.finish()
        self._live.clear()
        super().new_case()

    # Findings

    def expect_rejected(
        self, transcript: Transcript, *codes: grpc.StatusCode, because: str = ""
    ) -> None:
        """The engine must have refused the call with one of `codes` and sent no message."""
        if transcript.rejected and transcript.ending.code in codes:
            return
        names = " or ".join(code.name for code in codes)
        suffix = f" because {because}" if because else ""
        self.fail(f"{names} before acceptance{suffix}", describe(transcript), transcript)


def describe(transcript: Transcript) -> str:
    """How a call ended, in one line without any payload."""
    ending = transcript.ending
    if ending.origin is Origin.LOCAL and ending.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no end within {ending.seconds:.1f} s ({len(transcript.events)} messages)"
    where = "" if ending.origin is Origin.REMOTE else " (made by the client library)"
    count = len(transcript.events)
    messages = f" after {count} message{'s' if count > 1 else ''}" if count else ""
    return f"{ending.code.name}{where}{messages}"


def _tokens(transcript: Transcript) -> int:
    """Tokens that a call made the engine process, as reported, else as received."""
    answers = [m for m in transcript.messages if isinstance(m, v1.GenerateResponse)]
    for answer in reversed(answers):
        if answer.HasField("usage"):
            return answer.usage.total_tokens
    return sum(len(answer.token.tokens) for answer in answers)
