"""Requests that come, are aborted or are cancelled while a real server is paused."""

import grpc
import pytest

from oe_wire import v1
from tests.reference_engine.server.admin.calls import (
    ABORT,
    CONFIG,
    KEEP,
    WAIT,
    open_requests,
    pause,
    resume,
)
from tests.reference_engine.server.running import (
    eventually,
    finish,
    generate_request,
    long_request,
)

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_reject(reject):
    """New work during a pause is UNAVAILABLE before acceptance, malformed work INVALID_ARGUMENT."""
    pause(reject)
    refused = reject.generate(generate_request())
    assert (refused.code, refused.messages) == (grpc.StatusCode.UNAVAILABLE, [])
    assert refused.trailers == {
        "openengine-error-code": "ERROR_CODE_OVERLOADED",
        "openengine-error-retryable": "true",
    }
    assert reject.generate(v1.GenerateRequest()).code is INVALID
    assert open_requests(reject) == (0, 0)


@pytest.mark.parametrize("mode", [ABORT, WAIT, KEEP])
def test_hold(hold, mode):
    """New work during a pause is accepted, silent, counted as held, and runs after the resume."""
    expected = hold.generate(generate_request("held")).text()
    pause(hold, mode)
    calls = [hold.start_generate(generate_request("held")) for _ in range(2)]
    for call in calls:
        call.initial_metadata()
    assert open_requests(hold) == (2, 2)
    assert hold.app.frontend.engine.load.running_tokens == 0
    assert pause(hold, mode).message.held_requests == 2
    resume(hold)
    for call in calls:
        outcome = finish(call)
        assert (outcome.code, outcome.text()) == (OK, expected)


def test_held_requests_have_limits(hold):
    """Beyond the queue's limit a request is RESOURCE_EXHAUSTED, an id in use ALREADY_EXISTS."""
    pause(hold)
    most = CONFIG.max_running + CONFIG.max_waiting
    calls = [hold.start_generate(generate_request()) for _ in range(most)]
    for call in calls:
        call.initial_metadata()
    assert hold.generate(generate_request()).code is grpc.StatusCode.RESOURCE_EXHAUSTED
    resume(hold)
    assert all(finish(call).code is OK for call in calls)


def test_held_id_is_taken(hold):
    """The id of a held request is active."""
    pause(hold)
    request = generate_request()
    call = hold.start_generate(request)
    call.initial_metadata()
    assert hold.generate(request).code is grpc.StatusCode.ALREADY_EXISTS
    resume(hold)
    assert finish(call).code is OK


@pytest.fixture(name="not_running", params=["kept", "held"])
def fixture_not_running(hold, request):
    """A request that began before a pause or came during it, and its call."""
    if request.param == "held":
        pause(hold)
    generation = long_request()
    call = hold.start_generate(generation)
    call.initial_metadata()
    if request.param == "kept":
        next(call)
        pause(hold)
    return generation, call


def test_abort_of_one_that_does_not_run(hold, not_running):
    """Abort of a kept or held request ends it at once as CANCELLED; it does not come back."""
    request, call = not_running
    assert hold.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
    outcome = finish(call)
    assert outcome.ends()[0].reason == v1.FINISH_REASON_CANCELLED
    assert open_requests(hold) == (0, 0)
    again = hold.abort(request.request_id).message
    assert again.status == v1.ABORT_STATUS_ALREADY_FINISHED
    assert hold.free_blocks == hold.total_blocks


def test_cancellation_of_one_that_does_not_run(hold, not_running):
    """A caller that goes away frees its request, its id and its blocks during the pause."""
    _, call = not_running
    call.cancel()
    assert eventually(lambda: open_requests(hold) == (0, 0))
    assert eventually(lambda: hold.free_blocks == hold.total_blocks)
