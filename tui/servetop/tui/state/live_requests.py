"""Rows of requests that have not ended, from what the senders report about them once a second."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import replace

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.tui.state.request_phases import Preemptions, unknown_preemptions
from servetop.tui.state.request_rows import RequestRow, row_of

_MOST_CHUNKS = 64
"""Chunks by which the tokens received so far are represented."""


def live_rows(
    requests: Iterable[RequestInFlight],
    at: float,
    *,
    ended: Container[int] = (),
    preemptions: Preemptions = unknown_preemptions,
) -> list[RequestRow]:
    """The rows of the requests sent by `at`, as reported at that time or before; without those that have `ended`."""
    return [
        replace(row_of(_record(each), min(at, each.at), preemptions=preemptions), itl_max=math.nan)
        for each in requests
        if each.sent is not None and each.sent <= at and each.id not in ended
    ]


def _split(tokens: int, count: int) -> IntArray:
    """Whole numbers of nearly the same size that add up to `tokens`, shape (count,)."""
    numbers = np.arange(1, count + 1, dtype=np.int64)
    shares: IntArray = numbers * tokens // max(count, 1) - (numbers - 1) * tokens // max(count, 1)
    return shares


def _record(request: RequestInFlight) -> RequestRecord:
    """Return a record without an end: done at infinity, its tokens spread evenly from the first one to the last."""
    first, last, tokens = request.first_token_at, request.last_token_at, request.output_tokens
    count = 0 if first is None or last is None else min(tokens, _MOST_CHUNKS)
    return RequestRecord(
        id=request.id,
        stage=request.stage,
        due=request.due,
        sent=request.sent,
        first_token_at=first,
        done_at=math.inf,
        prompt_tokens=request.prompt_tokens,
        output_tokens=tokens,
        status=RequestStatus.OK,
        chunk_times=np.linspace(first or 0.0, last or 0.0, count),
        chunk_tokens=_split(tokens, count),
    )
