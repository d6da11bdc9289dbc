"""What counts as a lasting queue, and as sent late."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestRecord, RequestStatus
from servetop.simulator.virtual_run.admission_log import AdmissionLimit, AdmissionState
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.judgement.queue_truth import LastingQueue, first_sign, lasting_queues, late_sends, limit_shares
from tests.simulator.virtual_run.runs import plan_of

KV, BATCH, NONE = AdmissionLimit.KV, AdmissionLimit.BATCH, AdmissionLimit.NONE


def _states(*parts: tuple[float, AdmissionLimit, int]) -> tuple[AdmissionState, ...]:
    return tuple(AdmissionState(at, limit, waiting, running=8, preempted=0) for at, limit, waiting in parts)


@pytest.fixture(scope="module")
def empty_run() -> VirtualRun:
    return run_virtually(plan_of(StageConfig(request_rate=1.0, duration=30.0)))


def _with(run: VirtualRun, states: Sequence[AdmissionState]) -> VirtualRun:
    return dataclasses.replace(run, admissions=tuple(states))


def test_a_queue_lasts_from_its_first_long_wait_over_short_breaks(empty_run: VirtualRun) -> None:
    states = _states((2, KV, 3), (3, NONE, 0), (10, KV, 5), (16, NONE, 0), (16.5, BATCH, 4), (18, NONE, 0))
    assert lasting_queues(_with(empty_run, states)) == [LastingQueue(10, 18, KV, 6 / 7.5)]


@pytest.mark.parametrize("waiting", [0, 2])
def test_up_to_two_waiting_requests_are_not_a_queue(empty_run: VirtualRun, waiting: int) -> None:
    assert lasting_queues(_with(empty_run, _states((5, KV, waiting), (20, NONE, 0)))) == []


def test_the_limits_of_a_period_have_their_shares_of_its_time(empty_run: VirtualRun) -> None:
    run = _with(empty_run, _states((2, KV, 3), (3, NONE, 0), (10, BATCH, 5), (16, NONE, 0)))
    shares = limit_shares(run, 1.0, 12.0)
    assert shares == {KV: 0.1, NONE: 0.7, BATCH: 0.2, AdmissionLimit.BUDGET: 0.0}


def test_the_first_sign_is_the_first_wait_or_preemption() -> None:
    states = [
        *_states((1, BATCH, 1), (2, NONE, 0)),
        AdmissionState(3, NONE, 0, running=4, preempted=1),
        *_states((4, KV, 1)),
    ]
    assert first_sign(states, KV) == 3
    assert first_sign(states, BATCH) == 1
    assert first_sign(states, AdmissionLimit.BUDGET) is None


def test_requests_are_sent_late_for_good_after_five_seconds_without_a_punctual_one() -> None:
    slips = [0.0, 0.2, 0.0, *([0.3] * 10)]
    assert late_sends([_sent(due, due + slip) for due, slip in enumerate(slips)]) == (1, 3)
    assert late_sends([_sent(due, due + slip) for due, slip in enumerate(slips[:6])]) == (1, None)


def _sent(due: float, sent: float) -> RequestRecord:
    return RequestRecord(
        id=0, stage=0, due=due, sent=sent, prompt_tokens=1, status=RequestStatus.OK,
        chunk_times=np.empty(0), chunk_tokens=np.empty(0, np.int64),
    )  # fmt: skip
