"""The process of one rank: takes commands, runs steps, reports."""

import logging
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import torch

from reference_engine.engine.build import build_core
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.core import Emitted, EngineCore, OpenRequest
from reference_engine.engine.guard import BROKEN, Guard
from reference_engine.engine.output import RequestFailed
from reference_engine.errors import EngineException
from reference_engine.guided.guides import Guides
from reference_engine.lora.low_rank import from_arrays
from reference_engine.model.load import LoadedModel
from reference_engine.ranks.message import (
    Abort,
    Add,
    Command,
    DropAdapter,
    FailAfter,
    NotStarted,
    Operate,
    Progress,
    PutAdapter,
    Ready,
    SetAside,
    Stop,
    Unwedge,
    Wedge,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RankSetup:
    """How to start a rank; goes to its process. threads: of the model, None for all cores."""

    load: Callable[[], LoadedModel]
    config: EngineConfig
    threads: int | None = None
    log_level: int = logging.INFO


def run_rank(rank: int, setup: RankSetup, connection: Connection) -> None:
    """Load the model and work until told to stop, or until the server has gone."""
    # A terminal sends its signals to every process; the server decides when a rank ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(
        level=setup.log_level,
        format=f"%(asctime)s %(levelname)s rank {rank} %(name)s: %(message)s",
    )
    try:
        if setup.threads is not None:
            torch.set_num_threads(setup.threads)
        loaded = setup.load()
        core = build_core(loaded, setup.config, Guides(loaded.tokenizer))
    except EngineException as error:
        connection.send(NotStarted(str(error)))
        return
    try:
        connection.send(Ready(core.load))
        Worker(core, connection).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        log.warning("the server has gone, so this rank ends")


class Worker:
    """The loop of a rank: commands between two steps, one report after each."""

    def __init__(self, core: EngineCore, connection: Connection) -> None:
        self._core = core
        self._guard = Guard(core)
        self._connection = connection
        self._open: dict[int, OpenRequest] = {}
        self._numbers: dict[OpenRequest, int] = {}
        self._answers: list[tuple[int, bool]] = []
        self._outcomes: list[tuple[int, str | None]] = []
        self._put_off: deque[Command] = deque()
        self._stopping = False

    def run(self) -> None:
        """Work until Stop; EOFError or another OSError when the server has gone."""
        while not self._stopping:
            events = self._take_commands()
            if self._core.busy and not self._stopping:
                events += self._guard.step()
            self._report(events)

    def _take_commands(self) -> list[Emitted]:
        """Apply the commands that have come; without work to do, wait for the first."""
        events: list[Emitted] = []
        wait = not self._core.busy
        while not self._stopping and (self._put_off or self._connection.poll(None if wait else 0)):
            command = self._put_off.popleft() if self._put_off else self._connection.recv()
            events += self._guard.apply(partial(self._apply, command))
            wait = False
        return events

    def _apply(self, command: Command) -> list[Emitted]:
        match command:
            case Add():
                opened = self._core.add(command.request, command.fail_after)
                self._open[command.number] = opened
                self._numbers[opened] = command.number
            case Abort():
                return self._abort(command)
            case FailAfter():
                if command.number in self._open:
                    self._open[command.number].fail_after = command.tokens
            case Operate():
                return self._operate(command)
            case Wedge():
                self._wedge(command.seconds)
            case SetAside():
                opened_or_none = self._open.get(command.number)
                if opened_or_none is not None:
                    (self._core.park if command.aside else self._core.resume)(opened_or_none)
            case PutAdapter():
                return self._core.put_adapter(command.key, from_arrays(command.arrays))
            case DropAdapter():
                return self._core.drop_adapter(command.key)
            case Stop():
                self._stopping = True
                return self._core.abort_all()
        return []

    def _operate(self, command: Operate) -> list[Emitted]:
        failure: str | None = BROKEN
        try:
            events = self._core.operate(command.operation) if command.fault is None else []
            failure = command.fault
        finally:
            self._outcomes.append((command.answer, failure))
        return events

    def _wedge(self, seconds: float | None) -> None:
        """Read commands, so that the one that ends this is seen, but apply none."""
        end = None if seconds is None else time.monotonic() + seconds
        while self._connection.poll(None if end is None else max(0.0, end - time.monotonic())):
            command: Command = self._connection.recv()
            if isinstance(command, Unwedge):
                return
            self._put_off.append(command)
            if isinstance(command, Stop):
                return

    def _abort(self, command: Abort) -> list[Emitted]:
        opened = self._open.get(command.number)
        events = self._core.abort(opened) if opened is not None else []
        if command.answer is not None:
            self._answers.append((command.answer, bool(events)))
        return events

    def _report(self, events: list[Emitted]) -> None:
        numbered = tuple((self._numbers[opened], event) for opened, event in events)
        for opened, event in events:
            if isinstance(event, RequestFailed) or not opened.num_open:
                number = self._numbers.pop(opened, None)
                if number is not None:
                    del self._open[number]
        answers, self._answers = tuple(self._answers), []
        outcomes, self._outcomes = tuple(self._outcomes), []
        self._connection.send(
            Progress(numbered, answers, self._core.load, self._guard.failing, outcomes)
        )
