"""The inputs of the judgement: columns of ticks, and sums, minima and maxima over the ticks before each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from servetop.analysis.engine_gauges import KV_FULL, describe_before, kv_usages
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.verdicts.trust import LOOP_LAG_LIMIT, SLIP_LIMIT
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import StageChange
from servetop.core.histogram import LogHistogram, bucket_value
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS, Tick

_COLUMNS = (
    "due", "sent", "ok", "failed", "output_tokens", "prompt_tokens", "in_flight", "queued", "stage", "request_rate",
    "running", "waiting", "preemptions",
)  # fmt: skip
_GAUGES = ("running", "waiting", "kv")
_KNOWN_FOR = 6
"""Ticks for which a gauge without a newer value stays valid: `engine_gauges.STALE_AFTER`."""


def ticks_of(seconds: float) -> int:
    """The number of ticks in some seconds, at least 1."""
    return max(1, round(seconds / TICK_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals:
    """Columns of consecutive ticks; every array has shape (ticks,), NaN for values that the engine does not export."""

    ends: FloatArray
    """End of each tick, seconds."""
    due: FloatArray
    sent: FloatArray
    ok: FloatArray
    failed: FloatArray
    output_tokens: FloatArray
    prompt_tokens: FloatArray
    in_flight: FloatArray
    queued: FloatArray
    stage: FloatArray
    request_rate: FloatArray
    """Target rate; inf is a closed loop, NaN no load."""
    running: FloatArray
    waiting: FloatArray
    preemptions: FloatArray
    kv: FloatArray
    """KV usage, 0..1."""
    needed: FloatArray
    """Fraction of the KV blocks that a mean prompt of the newest requests needs; 0 if unknown."""
    batch: FloatArray
    """The engine's batch-size limit."""
    first_tokens: FloatArray
    """Requests whose first token arrived; `prompt_tokens` are theirs."""
    ttft: FloatArray
    """Sum of their TTFT from due, seconds."""
    late: FloatArray
    """Requests that an open loop sent more than SLIP_LIMIT after they were due."""
    lagging: FloatArray
    """Fraction of the senders' heartbeats that were later than LOOP_LAG_LIMIT; 0 if the kernel stamps arrivals."""
    throttled: BoolArray
    """Whether the clocks of a GPU were throttled."""

    @classmethod
    def of(
        cls, history: TickHistory, start: int, stop: int, *, facts: EngineFacts | None,
        stages: Sequence[StageChange] = (),
    ) -> Signals:  # fmt: skip
        """Read ticks `start` to `stop`; the stages and the facts say what the samples do not contain."""
        ticks = history.ticks[start:stop]
        columns = {name: history.column(name, start=start, stop=stop) for name in _COLUMNS}
        samples = [tick.engine for tick in ticks]
        used = history.column("kv_blocks_used", start=start, stop=stop)
        usage = history.column("kv_usage", start=start, stop=stop)
        blocks = np.array([math.nan if each is None else _number(each.kv_blocks_total) for each in samples])
        sizes = history.column("max_num_seqs", start=start, stop=stop)
        closed = np.isinf(columns["request_rate"])
        ends = np.array([tick.end for tick in ticks], dtype=np.float64)
        return cls(
            ends=ends,
            kv=kv_usages(usage, used, blocks),
            first_tokens=np.array([tick.client.ttft.count for tick in ticks], dtype=np.float64),
            ttft=np.array([tick.client.ttft_due.total for tick in ticks], dtype=np.float64),
            needed=_needed(ticks, blocks, facts),
            batch=np.where(np.isnan(sizes), _staged_sizes(ends, stages, facts), sizes),
            late=np.where(closed, 0.0, [_above(tick.client.slip, _SLIP_BUCKET) for tick in ticks]),
            lagging=np.array([_lagging(tick) for tick in ticks], dtype=np.float64),
            throttled=np.array([any(gpu.throttled for gpu in tick.gpus) for tick in ticks], dtype=np.bool_),
            **columns,
        ).without_old_pages(stages, page_age=0.0 if facts is None else facts.page_age)

    def without_old_pages(self, stages: Sequence[StageChange], *, page_age: float) -> Signals:
        """Return the ticks without the gauges of pages that may describe the time before their stage."""
        old = describe_before(self.ends, np.array([each.at for each in stages]), page_age=page_age)
        if not old.any():
            return self
        return replace(self, **{name: np.where(old, math.nan, getattr(self, name)) for name in _GAUGES})

    def followed_by(self, later: Signals) -> Signals:
        """Return these ticks and those that follow them."""
        return Signals(**{name: np.concatenate([getattr(self, name), getattr(later, name)]) for name in _FIELDS})

    def last(self, ticks: int) -> Signals:
        """Return the last ticks."""
        return Signals(**{name: getattr(self, name)[-ticks:] for name in _FIELDS})

    def without_gaps(self) -> Signals:
        """Return the ticks with the engine's gauges repeated for a short time while there is no newer sample."""
        running, waiting, kv, batch = map(_held, (self.running, self.waiting, self.kv, self.batch))
        return replace(self, running=running, waiting=waiting, kv=kv, batch=batch)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def closed(self) -> BoolArray:
        """Whether the load is a closed loop."""
        return np.isinf(self.request_rate)

    @property
    def backlog(self) -> FloatArray:
        """Requests of an open loop that wait at the engine or the client; NaN if the engine exports no queue."""
        return self.waiting + np.where(self.closed, 0.0, self.queued)

    @property
    def kv_is_full(self) -> BoolArray:
        """Whether KV_FULL of the blocks are in use, or too many for another prompt while requests wait."""
        return (self.kv >= KV_FULL) | ((self.kv >= self.kv_level) & (self.waiting > 0))

    @property
    def kv_level(self) -> FloatArray:
        """The usage from which another prompt does not fit; at most KV_FULL, at least half of the blocks."""
        return np.clip(1 - trailing_max(self.needed, ticks_of(10)), 0.5, KV_FULL)

    @property
    def throughput(self) -> FloatArray:
        """Requests/s completed or due over ten seconds, whichever is more."""
        window = ticks_of(10)
        done, due = trailing_sum(self.ok, window), trailing_sum(self.due, window)
        return np.maximum(done, due) / np.minimum(np.arange(1, len(self) + 1), window) / TICK_SECONDS


def _staged_sizes(ends: FloatArray, stages: Sequence[StageChange], facts: EngineFacts | None) -> FloatArray:
    """Return the batch size of the stage of each tick: the facts of a restarted engine are those of its last start."""
    restarted = facts is None or not facts.changes_batch_size_live
    sized = [stage for stage in stages if restarted and stage.max_num_seqs is not None]
    default = _number(None if facts is None else facts.max_num_seqs)
    sizes = np.array([default, *(_number(stage.max_num_seqs) for stage in sized)])
    return np.asarray(sizes[np.searchsorted([stage.at for stage in sized], ends, side="left")])


def _needed(ticks: Sequence[Tick], blocks: FloatArray, facts: EngineFacts | None) -> FloatArray:
    size = 0 if facts is None or not facts.block_size else facts.block_size
    total = np.where(np.isnan(blocks), _number(None if facts is None else facts.kv_blocks_total), blocks)
    prompts = np.array([tick.client.prompt_tokens for tick in ticks], dtype=np.float64)
    counts = np.array([tick.client.ttft.count if tick.client.prompt_tokens else 0 for tick in ticks], dtype=np.float64)
    mean = np.divide(prompts, counts, out=np.zeros(prompts.shape), where=counts > 0)
    return np.nan_to_num(np.divide(np.ceil(mean / size) + 1, total)) if size else np.zeros(prompts.shape)


_FIELDS = tuple(Signals.__dataclass_fields__)


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


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _held(values: FloatArray) -> FloatArray:
    """Repeat the last known value in place of unknown ones, for a short time."""
    position = np.arange(values.size)
    known = np.maximum.accumulate(np.where(np.isnan(values), -1, position))
    recent = (known >= 0) & (position - known <= _KNOWN_FOR)
    return np.where(recent, values[np.maximum(known, 0)], np.nan)


def trailing_sum(values: FloatArray | BoolArray, ticks: int) -> FloatArray:
    """Sum each value and those before it, `ticks` in all, or as many as there are; NaN counts as 0."""
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values, posinf=0.0))])
    position = np.arange(1, sums.size)
    return np.asarray(sums[position] - sums[np.maximum(position - ticks, 0)])


def trailing_max(values: FloatArray, ticks: int) -> FloatArray:
    """Return the maximum of each value and those before it, `ticks` in all; -inf if all are NaN."""
    padded = np.concatenate([np.full(ticks - 1, -np.inf), np.where(np.isnan(values), -np.inf, values)])
    return np.asarray(sliding_window_view(padded, ticks).max(axis=1)) if values.size else values


def trailing_min(values: FloatArray, ticks: int) -> FloatArray:
    """Return the minimum of each value and those before it; -inf where one is NaN or fewer than `ticks` exist."""
    found = -trailing_max(np.where(np.isnan(values), np.inf, -values), ticks)
    found[: ticks - 1] = -np.inf
    return found


def trailing_all(values: BoolArray, ticks: int) -> BoolArray:
    """Whether a condition held at each tick and those before it, `ticks` in all."""
    return np.asarray(trailing_sum(values, ticks) >= ticks)


def first_in(active: BoolArray, position: int, ticks: int) -> int:
    """Return the first active tick of the last `ticks` up to `position`; `position` if there is none."""
    start = max(0, position + 1 - ticks)
    found = np.flatnonzero(active[start : position + 1])
    return start + int(found[0]) if found.size else position


def first_after(calm: BoolArray, position: int, ticks: int) -> int:
    """Return the tick after the last calm one of the last `ticks` up to `position`; the oldest if none was calm."""
    start = max(0, position + 1 - ticks)
    found = np.flatnonzero(calm[start : position + 1])
    return min(start + int(found[-1]) + 1, position) if found.size else start
