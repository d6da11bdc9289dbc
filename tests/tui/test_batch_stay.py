"""The stay of a request in the batch: its admission, and pauses that are preemptions or stalls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.film.batch_stay import are_preemptions, batch_stay

TIMES = np.array([12.0, 12.02, 12.04, 12.06, 14.06, 14.08, 14.10])
RECORD = RequestRecord(
    id=7, stage=0, due=9.0, sent=10.0, first_token_at=12.0, done_at=14.11, prompt_tokens=100, output_tokens=7,
    status=RequestStatus.OK, chunk_times=TIMES, chunk_tokens=np.ones(7, dtype=np.int64),
)  # fmt: skip


def test_the_admission_is_reported_by_the_engine_or_estimated_from_the_first_token() -> None:
    queued = batch_stay(replace(RECORD, server_queue=1.5, server_prefill=0.4), prefill=0.1)
    prefilled = batch_stay(replace(RECORD, server_prefill=0.25), prefill=0.1)
    mean = batch_stay(RECORD, prefill=0.125)
    step = batch_stay(RECORD, prefill=math.nan)
    assert queued is not None
    assert prefilled is not None
    assert mean is not None
    assert step is not None
    assert (queued.admitted, queued.reported) == (11.5, True)
    assert (prefilled.admitted, prefilled.reported) == (11.75, True)
    assert (mean.admitted, mean.reported) == (11.875, False)
    assert step.admitted == pytest.approx(11.98)
    assert not step.reported


def test_the_admission_lies_between_sending_and_the_first_token() -> None:
    early, late = batch_stay(RECORD, prefill=60.0), batch_stay(replace(RECORD, server_queue=30.0), prefill=0.1)
    assert early is not None
    assert late is not None
    assert (early.admitted, late.admitted) == (10.0, 12.0)


def test_a_request_without_a_token_has_no_stay() -> None:
    assert batch_stay(replace(RECORD, first_token_at=None, chunk_times=TIMES[:0]), prefill=0.1) is None
    assert batch_stay(replace(RECORD, sent=None), prefill=0.1) is None


def test_a_gap_far_above_the_median_is_a_pause() -> None:
    stay = batch_stay(RECORD, prefill=0.1)
    assert stay is not None
    assert stay.pauses.tolist() == [[12.06, 14.06]]
    steady = batch_stay(replace(RECORD, chunk_times=np.arange(12.0, 15.5, 0.5)), prefill=0.1)
    assert steady is not None
    assert len(steady.pauses) == 0


@pytest.mark.parametrize(
    ("counted_at", "preempted"),
    [(11.0, False), (12.5, True), (13.5, True), (14.5, True), (15.5, False), (None, False)],
)
def test_a_pause_is_a_preemption_if_the_engine_counted_one_meanwhile(counted_at: float | None, preempted: bool) -> None:
    times = np.arange(10.5, 17.0, 0.5)
    counted = np.where(times == counted_at, 1.0, 0.0) if counted_at is not None else np.full(times.size, np.nan)
    assert are_preemptions(np.array([[12.06, 14.06]]), times, counted).tolist() == [preempted]
