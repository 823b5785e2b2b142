"""Calls that run: cancelled, waited for, ended with their connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from conformance.wire.connection import Connection
from conformance.wire.target import Target
from conformance.wire.transcript import ActionKind, Origin
from oe_wire import v1
from tests.conformance.wire.servers import (
    GENERATE,
    LONG,
    SERVER_INFO,
    Connect,
    Endless,
    Serve,
    failing,
    tokens,
)


def test_cancel_reaches_the_engine(serve: Serve, connect: Connect) -> None:
    """A cancelled call ends at once, says so, and ends at the engine too."""
    engine = Endless()
    connection = connect(serve({"Inference": {"Generate": engine}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    assert not live.done
    live.cancel()
    live.cancel()
    transcript = live.finish()
    assert transcript.ending.code is grpc.StatusCode.CANCELLED
    assert transcript.ending.origin is Origin.LOCAL
    assert [action.kind for action in transcript.actions] == [ActionKind.CANCEL]
    assert transcript.messages == (tokens(1),)
    assert engine.ended.wait(LONG)


def test_cancelled_by_the_engine_is_remote(serve: Serve, connect: Connect) -> None:
    """CANCELLED that nobody asked for here came from the engine."""
    answer = failing(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
    connection = connect(serve({"Control": {"GetServerInfo": answer}}))
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.rejected


def test_cancel_after_the_end_changes_nothing(serve: Serve, connect: Connect) -> None:
    """A call that has ended stays as it was."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_end(LONG)
    live.cancel()
    assert live.finish().undisturbed


def test_finish_with_a_limit_cancels(serve: Serve, connect: Connect) -> None:
    """A call that outlives the limit of `finish` is cancelled rather than left running."""
    engine = Endless()
    connection = connect(serve({"Inference": {"Generate": engine}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    transcript = live.finish(timeout=0)
    assert transcript.acted(ActionKind.CANCEL)
    assert engine.ended.wait(LONG)


def test_wait_event(serve: Serve, connect: Connect) -> None:
    """True at the awaited count, False when the call ends or the time runs out before."""
    connection = connect(
        serve({"Inference": {"Generate": lambda request, context: iter([tokens(1), tokens(2)])}})
    )
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(2, timeout=LONG)
    assert not live.wait_event(3, timeout=LONG)
    assert len(live.events) == 2
    endless = connect(serve({"Inference": {"Generate": Endless()}}))
    live = endless.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert not live.wait_event(2, timeout=0)
    live.cancel()
    live.finish()


def test_act_is_recorded_in_order(serve: Serve, connect: Connect) -> None:
    """What the client did from aside appears among the actions with its time."""
    connection = connect(serve({"Inference": {"Generate": Endless()}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    live.act(ActionKind.ABORT)
    live.cancel()
    transcript = live.finish()
    assert [action.kind for action in transcript.actions] == [ActionKind.ABORT, ActionKind.CANCEL]
    seconds = [action.seconds for action in transcript.actions]
    assert transcript.events[0].seconds <= seconds[0] <= seconds[1]


def test_close_ends_running_calls_at_the_engine(serve: Serve) -> None:
    """Closing a connection leaves nothing running on the target."""
    engine = Endless()
    connection = Connection(Target(serve({"Inference": {"Generate": engine}})))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    connection.close()
    assert live.done
    assert engine.ended.wait(LONG)
    assert live.finish().acted(ActionKind.CANCEL)


def test_cancel_all_from_another_thread(serve: Serve, connect: Connect) -> None:
    """Ctrl-C ends calls that other threads wait for, and later calls send nothing."""
    started: list[str] = []

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        started.append(request.request_id)
        gone = threading.Event()
        context.add_callback(gone.set)
        yield tokens(1)
        gone.wait(LONG)

    connection = connect(serve({"Inference": {"Generate": generate}}))
    calls = [
        connection.start(GENERATE, v1.GenerateRequest(request_id=str(n)), deadline=LONG)
        for n in range(3)
    ]
    assert all(live.wait_event(timeout=LONG) for live in calls)
    stopper = threading.Thread(target=connection.cancel_all)
    stopper.start()
    endings = [live.finish().ending for live in calls]
    stopper.join(LONG)
    assert {ending.code for ending in endings} == {grpc.StatusCode.CANCELLED}
    late = connection.call(GENERATE, v1.GenerateRequest(request_id="late"), deadline=LONG)
    assert late.ending.code is grpc.StatusCode.CANCELLED
    assert late.ending.origin is Origin.LOCAL
    assert late.acted(ActionKind.CANCEL)
    assert sorted(started) == ["0", "1", "2"]


def test_many_calls_at_once_leave_no_thread(serve: Serve) -> None:
    """Calls from several threads on one connection keep apart, and their readers end."""

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        for _ in range(5):
            yield v1.GenerateResponse(request_id=request.request_id)

    connection = Connection(Target(serve({"Inference": {"Generate": generate}})))

    def ask(number: int) -> set[str]:
        request = v1.GenerateRequest(request_id=str(number))
        messages = connection.call(GENERATE, request, deadline=LONG).messages
        assert len(messages) == 5
        return {m.request_id for m in messages if isinstance(m, v1.GenerateResponse)}

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(100))) == [{str(number)} for number in range(100)]
    connection.close()
    for thread in threading.enumerate():
        if thread.name.startswith("call "):
            thread.join(LONG)
            assert not thread.is_alive()
