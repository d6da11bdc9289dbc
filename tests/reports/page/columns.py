"""Requests as columns for tests of pages: drawn latencies, some failed and cancelled, in two stages."""

from __future__ import annotations

import numpy as np

from servetop.analysis.columns.request_columns import STATUSES, RequestColumns
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestStatus


def request_columns(count: int, *, seed: int = 7) -> RequestColumns:
    """`count` requests, one every 10 ms, with log-normal latencies."""
    draws = np.random.default_rng(seed)
    sent: FloatArray = np.arange(count, dtype=np.float64) * 0.01
    ttft = draws.lognormal(-2.0, 1.0, count)
    output = draws.integers(1, 200, count).astype(np.float64)
    failed, cancelled = np.arange(count) % 10 == 3, np.arange(count) % 10 == 7
    unserved = failed | cancelled
    status = np.full(count, STATUSES.index(RequestStatus.OK), dtype=np.int8)
    status[failed], status[cancelled] = STATUSES.index(RequestStatus.ERROR), STATUSES.index(RequestStatus.CANCELLED)
    first = np.where(unserved, np.nan, sent + ttft)
    nothing = np.full(count, np.nan)
    return RequestColumns(
        due=sent, sent=sent, first_token_at=first, done_at=first + output * draws.lognormal(-4.0, 0.3, count),
        prompt_tokens=np.full(count, 10.0), output_tokens=output, first_output_at=nothing, reasoning_tokens=nothing,
        required_tokens=nothing, status=status, token_source=np.zeros(count, dtype=np.int8),
        first_tokens=np.ones(count), sized=np.ones(count, dtype=bool), itl=Distribution.of(draws.lognormal(-4, 1, 50)),
        tokens_by_second=np.zeros(1), others={"stage": (np.arange(count) % 2).astype(np.float32)},
    )  # fmt: skip
