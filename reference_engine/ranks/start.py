"""Starts the processes of ranks and waits until each has its model."""

import multiprocessing
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from reference_engine.errors import ConfigError, EngineException
from reference_engine.ranks.message import NotStarted, Ready, Report
from reference_engine.ranks.rank import Rank
from reference_engine.ranks.worker import RankSetup, run_rank


def start_ranks(count: int, setup: RankSetup) -> tuple[Rank, ...]:
    """One process per rank, loading at the same time. Blocks until all are ready.

    Raises ConfigError with the reason of a rank that cannot start, EngineException when a process
    ends without one; no process is left then.
    """
    # A forked copy of a process with torch's threads hangs; and nothing but setup is inherited.
    context = multiprocessing.get_context("spawn")
    max_open = setup.config.max_running + setup.config.max_waiting
    with ExitStack() as undo:
        started: list[tuple[BaseProcess, Connection]] = []
        for rank in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=run_rank, args=(rank, setup, theirs), name=f"rank-{rank}", daemon=True
            )
            undo.callback(ours.close)
            with theirs:
                process.start()
            undo.callback(process.join)
            undo.callback(process.kill)
            started.append((process, ours))
        ranks = tuple(
            Rank(process, connection, _ready(process, connection).load, max_open)
            for process, connection in started
        )
        undo.pop_all()
    return ranks


def _ready(process: BaseProcess, connection: Connection) -> Ready:
    try:
        report: Report = connection.recv()
    except (EOFError, ConnectionResetError):
        process.join()
        raise EngineException(
            f"{process.name} ended with code {process.exitcode} before its model was loaded"
        ) from None
    if isinstance(report, NotStarted):
        raise ConfigError(report.reason)
    if not isinstance(report, Ready):
        raise EngineException(f"{process.name} began with {type(report).__name__}")
    return report
