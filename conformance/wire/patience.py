"""Discovery calls under one common deadline: an engine that is not up yet is asked again."""

from __future__ import annotations

import threading
import time

import grpc
from google.protobuf.message import Message

from conformance.errors import UnreachableError
from conformance.wire.connection import Connection
from conformance.wire.diagnosis import Diagnosis, diagnose
from conformance.wire.transcript import Origin, Transcript
from oe_wire.services import Method

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
# The part of the limit kept for finding out why the target gave no answer.
_RESERVE = 0.2
_LONGEST_RESERVE = 1.0
_LONGEST_TEXT = 160


def one_line(details: str) -> str:
    """A status text that may come from anywhere, fit for one line of an error."""
    text = " ".join(details.split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def _last_seen(transcript: Transcript) -> str:
    """How a call went that gave no usable answer, where that says more than its silence."""
    ending, count = transcript.ending, len(transcript.events)
    if count:
        return f" ({count} message{'' if count == 1 else 's'} and no end)"
    if ending.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return ""
    return f" (gRPC says {ending.code.name}: {one_line(ending.details)})"


def _unavailable(transcript: Transcript) -> str:
    return f"{transcript.method} answers UNAVAILABLE ({one_line(transcript.ending.details)})"


class Patience:
    """Asks until the limit, counted in seconds from the first ask, has run out."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        self.connection = connection
        self.timeout = timeout
        reserve = min(_LONGEST_RESERVE, _RESERVE * timeout)
        self._reserve = reserve
        self._end = time.monotonic() + timeout - reserve
        self._pause = threading.Event()

    def ask(self, method: Method, request: Message) -> Transcript:
        """The engine's answer to a call, whatever it is but UNAVAILABLE: that is asked again.

        Raises UnreachableError with the reason when no answer comes within the limit, at once
        when waiting cannot help (another protocol, a rejected certificate).
        """
        pause = FIRST_PAUSE
        looked, said = False, ""  # said: the engine's last answer, kept over a try cut short
        while True:
            rest = self._end - time.monotonic()
            transcript = self.connection.call(method, request, deadline=max(rest, 0.01))
            code = transcript.ending.code
            local = transcript.ending.origin is Origin.LOCAL
            if not local and code is not grpc.StatusCode.UNAVAILABLE:
                return transcript
            if local and code is grpc.StatusCode.CANCELLED:
                raise UnreachableError(f"{self._where(method)}: interrupted")
            if code is grpc.StatusCode.UNAVAILABLE:
                said = "" if local else _unavailable(transcript)
            if code is grpc.StatusCode.DEADLINE_EXCEEDED or self._end <= time.monotonic():
                raise self._silence(method, said or self._explain(transcript, method))
            if local and not looked:
                looked = True
                self._give_up_if_hopeless(method)
            self._pause.wait(min(pause, max(0.0, self._end - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE)

    def connect(self, method: Method) -> None:
        """Wait until the listener that serves this RPC has a connection, without any call.

        Raises UnreachableError as `ask` does.
        """
        rest = max(0.01, self._end - time.monotonic())
        if not self.connection.wait_ready(method, rest):
            raise self._silence(method, self._diagnose(method).text)

    def _give_up_if_hopeless(self, method: Method) -> None:
        found = self._diagnose(method)
        if found.permanent:
            raise UnreachableError(f"{self._where(method)}: {found.text}")

    def _explain(self, last: Transcript, method: Method) -> str:
        found = self._diagnose(method)
        return found.text + (_last_seen(last) if found.connected else "")

    def _diagnose(self, method: Method) -> Diagnosis:
        address = self.connection.address_of(method)
        return diagnose(self.connection.target, address, self._reserve)

    def _silence(self, method: Method, text: str) -> UnreachableError:
        return UnreachableError(f"{self._where(method)}: {text}; waited {self.timeout:g} s")

    def _where(self, method: Method) -> str:
        return self.connection.address_of(method).removeprefix("dns:///")
