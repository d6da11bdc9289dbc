"""The outcome of a run, from the reports of its senders."""

import dataclasses

import numpy as np

from servetop.core.events import Action, RequestRecord, RequestStatus
from servetop.run.outcome import Outcome

CANCELLED = RequestRecord(
    id=1,
    stage=0,
    due=0.0,
    sent=0.0,
    prompt_tokens=8,
    status=RequestStatus.CANCELLED,
    error="not finished within the drain timeout",
    chunk_times=np.empty(0),
    chunk_tokens=np.empty(0, dtype=np.int64),
)


def test_a_dead_sender_fails_the_run_and_is_its_last_line() -> None:
    outcome = Outcome(max_failures="100%")
    outcome.take([], deaths=["sender 1 died (exit code -9): 0 requests in flight are lost"])
    outcome.take([])
    end = outcome.end(3.0, None)
    assert (end.exit_code, end.reason) == (1, "sender 1 died (exit code -9): 0 requests in flight are lost")


def test_a_run_without_dead_senders_succeeds() -> None:
    outcome = Outcome()
    outcome.take([])
    assert outcome.end(3.0, None).exit_code == 0


def test_a_load_of_which_every_request_was_cancelled_fails() -> None:
    outcome = Outcome()
    unsent = dataclasses.replace(CANCELLED, error="not sent before the drain timeout")
    outcome.take([CANCELLED, CANCELLED, unsent])
    end = outcome.end(3.0, None)
    assert end.exit_code == 1
    assert end.reason == "no request succeeded, 3 were cancelled; most often: not finished within the drain timeout"


def test_a_load_that_was_stopped_or_has_figures_does_not_fail_because_of_cancelled_requests() -> None:
    stopped, measured = Outcome(), Outcome()
    stopped.stopped_by = Action.STOP
    stopped.take([CANCELLED])
    measured.take([CANCELLED, dataclasses.replace(CANCELLED, status=RequestStatus.OK, error=None)])
    assert [outcome.end(3.0, None).exit_code for outcome in (stopped, measured)] == [0, 0]
