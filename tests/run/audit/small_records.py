"""Requests with few values."""

from __future__ import annotations

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus


def record(
    number: int, *, sent: float, first: float | None, done: float, status: RequestStatus = RequestStatus.OK
) -> RequestRecord:
    """A request with four tokens, one a chunk, evenly from `first` to `done`; none without `first`."""
    times = np.empty(0) if first is None else np.linspace(first, done, 4)
    return RequestRecord(
        id=number,
        stage=0,
        due=sent,
        sent=sent,
        first_token_at=first,
        done_at=done,
        prompt_tokens=8,
        output_tokens=times.size,
        status=status,
        chunk_times=times,
        chunk_tokens=np.ones(times.shape, np.int64),
    )
