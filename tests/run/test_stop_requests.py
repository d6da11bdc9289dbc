"""The most urgent request to stop applies."""

import asyncio

import pytest

from servetop.core.events import Action
from servetop.run.outcome import Outcome
from servetop.run.stop_requests import StopRequests


def test_without_a_request_there_is_no_action() -> None:
    assert StopRequests(Outcome(), lambda _: None).action is None


def test_the_first_reason_of_a_drain_applies_and_is_noted_once() -> None:
    outcome, notes = Outcome(), list[str]()
    requests = StopRequests(outcome, notes.append)
    requests.drain("SIGTERM")
    requests.drain("the owner ended")
    assert (requests.action, outcome.drain_reason, notes) == (Action.STOP, "SIGTERM", ["SIGTERM"])


def test_a_cancellation_is_more_urgent_than_a_drain() -> None:
    requests = StopRequests(Outcome(), lambda _: None)
    requests.cancel()
    requests.drain("SIGTERM")
    assert requests.action is Action.CANCEL


def test_an_abandoned_run_hurries_and_cancels() -> None:
    hurried = list[bool]()
    requests = StopRequests(Outcome(), lambda _: None, lambda: hurried.append(True))
    requests.abandon()
    assert (requests.action, hurried) == (Action.CANCEL, [True])


async def test_an_error_of_the_load_is_raised() -> None:
    load = asyncio.get_running_loop().create_future()
    load.set_exception(OSError("no more files"))
    with pytest.raises(OSError, match="no more files"):
        await StopRequests(Outcome(), lambda _: None).wait_for(load)
