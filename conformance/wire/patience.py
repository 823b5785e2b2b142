"""Discovery calls under one common deadline: an engine that is not up yet is asked again."""

from __future__ import annotations

import threading
import time

import grpc
from google.protobuf.message import Message

from conformance.errors import UnreachableError
from conformance.wire.connection import Connection
from conformance.wire.diagnosis import diagnose
from conformance.wire.transcript import Origin, Transcript
from oe_wire.services import Method

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
# The part of the limit kept for finding out why the target gave no answer.
_RESERVE = 0.2
_LONGEST_RESERVE = 1.0


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
        looked = False
        while True:
            rest = self._end - time.monotonic()
            transcript = self.connection.call(method, request, deadline=max(rest, 0.01))
            ending = transcript.ending
            local = ending.origin is Origin.LOCAL
            if not local and ending.code is not grpc.StatusCode.UNAVAILABLE:
                return transcript
            if local and ending.code is grpc.StatusCode.CANCELLED:
                raise UnreachableError(f"{self._where(method)}: interrupted")
            if ending.code is not grpc.StatusCode.UNAVAILABLE or self._end <= time.monotonic():
                raise self._no_answer(method, transcript)
            if local and not looked:
                looked = True
                self._give_up_if_hopeless(method)
            self._pause.wait(min(pause, max(0.0, self._end - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _give_up_if_hopeless(self, method: Method) -> None:
        address = self.connection.address_of(method)
        found = diagnose(self.connection.target, address, self._reserve)
        if found.permanent:
            raise UnreachableError(f"{self._where(method)}: {found.text}")

    def _no_answer(self, method: Method, transcript: Transcript) -> UnreachableError:
        ending = transcript.ending
        if ending.code is grpc.StatusCode.UNAVAILABLE and ending.origin is Origin.REMOTE:
            text = f"{method.full_name} answers UNAVAILABLE ({ending.details})"
        else:
            address = self.connection.address_of(method)
            text = diagnose(self.connection.target, address, self._reserve).text
        return UnreachableError(f"{self._where(method)}: {text}; waited {self.timeout:g} s")

    def _where(self, method: Method) -> str:
        return self.connection.address_of(method).removeprefix("dns:///")
