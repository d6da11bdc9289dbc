"""Objectives are met from sent or from due, only by requests that succeeded."""

from __future__ import annotations

import numpy as np

from servetop.analysis.trust.objectives import meets_objectives
from servetop.core.events import RequestRecord, RequestStatus


def request(*, waited: float, ttft: float, status: RequestStatus = RequestStatus.OK) -> RequestRecord:
    times = np.array([waited + ttft, waited + ttft + 0.1, waited + ttft + 0.2])
    return RequestRecord(
        id=0, stage=0, due=0.0, sent=waited, first_token_at=float(times[0]), done_at=float(times[-1]), prompt_tokens=1,
        output_tokens=3, status=status, chunk_times=times, chunk_tokens=np.ones(3, dtype=np.int64),
    )  # fmt: skip


def test_time_in_the_clients_queue_counts_only_from_due() -> None:
    late = request(waited=2.0, ttft=0.1)
    for limits in ({"ttft": 0.5}, {"e2el": 0.5}, {"ttfot": 0.5}):
        assert meets_objectives(late, limits)
        assert not meets_objectives(late, limits, from_due=True)
    assert meets_objectives(late, {"tpot": 0.11}, from_due=True)
    assert not meets_objectives(late, {"tpot": 0.09})


def test_a_request_that_failed_meets_no_objective() -> None:
    for status in (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED, RequestStatus.CANCELLED):
        assert not meets_objectives(request(waited=0.0, ttft=0.1, status=status), {"ttft": 0.5})
