"""The inputs of the judgement that only a client sees: columns of ticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.analysis.diagnosis.kv_need import squared_outputs
from servetop.analysis.trust.trust import LOOP_LAG_LIMIT, SLIP_LIMIT
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram, bucket_value
from servetop.core.tick import Tick

CLIENT_SIGNALS = ("first_tokens", "ttft", "served_ttft", "finished_tokens", "squared_outputs", "late", "lagging")
"""Fields of `Signals`; all are 0 in a tick in which nothing was in flight."""


def client_columns(ticks: Sequence[Tick]) -> dict[str, FloatArray]:
    """Return the columns of CLIENT_SIGNALS, each of shape (ticks,)."""
    clients = [tick.client for tick in ticks]
    columns = (
        [each.ttft.count for each in clients],
        [each.ttft_due.total for each in clients],
        [each.ttft.total for each in clients],
        [each.output_len.total for each in clients],
        [squared_outputs(each.output_len) for each in clients],
        [_above(each.slip, _SLIP_BUCKET) for each in clients],
        [_lagging(tick) for tick in ticks],
    )
    return {name: np.array(values, dtype=np.float64) for name, values in zip(CLIENT_SIGNALS, columns, strict=True)}


def _bucket_above(seconds: float) -> int:
    return next(bucket for bucket in range(1400) if bucket_value(bucket) > seconds)


_SLIP_BUCKET, _LAG_BUCKET = _bucket_above(SLIP_LIMIT), _bucket_above(LOOP_LAG_LIMIT)


def _above(histogram: LogHistogram, bucket: int) -> float:
    """Return the number of values in `bucket` and those above it."""
    if not histogram.buckets.size or histogram.buckets[-1] < bucket:
        return 0.0
    return float(histogram.counts[histogram.buckets >= bucket].sum())


def _lagging(tick: Tick) -> float:
    client = tick.client
    if client.chunks and client.stamped == client.chunks:
        return 0.0
    late = _above(client.loop_lag, _LAG_BUCKET)
    return late / client.loop_lag.count if late else 0.0
