"""What a check body may do: make calls, wait for conditions, and say what it found.

Every call goes through here, so that it is counted against the budget, recorded, and judged by
all laws whatever the check is about.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, cast

import grpc
from google.protobuf.message import Message

from conformance.checks.violation import NotJudged, Tolerated, Violation
from conformance.errors import UnreachableError
from conformance.laws import judge
from conformance.laws.law import GENERATE, Finding, Ruling
from conformance.model.case import FRESH_ID, Case
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.pace import Pace
from conformance.wire.transcript import Metadata, Origin, Transcript
from oe_wire import v1
from oe_wire.services import METHODS

# Between two looks at a condition: short against any limit (seconds), long against a call (ms).
POLL_SECONDS = 0.05


@dataclass(slots=True)
class Spending:
    """What a check has cost so far, and the most it may cost."""

    max_requests: int
    max_tokens: int
    requests: int = 0
    tokens: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether one of the limits is reached."""
        return self.requests >= self.max_requests or self.tokens >= self.max_tokens


@dataclass(slots=True)
class CaseLog:
    """The calls of one case, and what each law said about them."""

    transcripts: list[Transcript] = field(default_factory=list)
    rulings: dict[str, list[tuple[Ruling, Transcript]]] = field(default_factory=dict)


class Probe:
    """The hands of one check in one worker.

    declared: what the engine said about itself. pace: time limits. methods: full names of all RPCs
    that the check has called. stop: set when the run ends early; every call then raises
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
        self.requirement = requirement
        self.connection = connection
        self.declared = declared
        self.pace = pace
        self.spending = spending
        self.log = CaseLog()
        self.methods: set[str] = set()
        self._stop = stop
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
        if self._stop.is_set():
            raise Interrupted
        full_name = name if "." in name else f"openengine.v1.{name}"
        limit = self.limit(request) if deadline is None else deadline
        self.spending.requests += 1
        self.methods.add(full_name)
        live = self.connection.start(METHODS[full_name], request, metadata=metadata, deadline=limit)
        self._live.append(live)
        return live

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

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Ask `condition` until it holds or `seconds` have passed; whether it held."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= end:
                return False
            if self._stop.wait(POLL_SECONDS):
                raise Interrupted
        return True

    def new_case(self) -> None:
        """Forget the calls of the last case; end what it left running."""
        for live in self._live:
            live.cancel()
            live.finish()
        self._live.clear()
        self.log = CaseLog()

    # Findings

    def fail(
        self,
        expected: str,
        actual: str,
        transcript: Transcript | None = None,
        event: int | None = None,
    ) -> NoReturn:
        """The requirement is broken. Neither text may hold prompts or outputs."""
        raise Violation(self.requirement, expected, actual, transcript, event)

    def tolerate(
        self, expected: str, actual: str, transcript: Transcript | None = None
    ) -> NoReturn:
        """The requirement is broken in a way that its row only warns about."""
        raise Tolerated(self.requirement, expected, actual, transcript)

    def skip(self, why: str, *, too_large: bool = False) -> NoReturn:
        """This case says nothing about the requirement. too_large: because a limit that it would
        have to go beyond is unreported, or too large to be reached at a reasonable cost.
        """
        raise NotJudged(why, too_large=too_large)

    def settle(self) -> None:
        """For a check that is a law: take over what the law said about the calls of this case."""
        rulings = self.log.rulings.get(self.requirement, [])
        for ruling, transcript in rulings:
            if isinstance(ruling, Finding):
                self.fail(ruling.expected, ruling.actual, transcript, ruling.event)
        if not any(ruling is True for ruling, _ in rulings):
            self.skip("no call of this case met the precondition of the rule")

    def expect_rejected(
        self, transcript: Transcript, *codes: grpc.StatusCode, because: str = ""
    ) -> None:
        """The engine must have refused the call with one of `codes` and sent no message."""
        if transcript.rejected and transcript.ending.code in codes:
            return
        names = " or ".join(code.name for code in codes)
        suffix = f" because {because}" if because else ""
        self.fail(f"{names} before acceptance{suffix}", describe(transcript), transcript)


class Interrupted(BaseException):
    """The run was stopped; no check may go on. Not an Exception: nothing may swallow it."""


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
