"""The inputs of the judgement: columns of ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from servetop.analysis.diagnosis.client_signals import CLIENT_SIGNALS, client_columns
from servetop.analysis.diagnosis.kv_need import prompt_share, reserved_share, token_share
from servetop.analysis.diagnosis.trailing import (
    last_known,
    new_pages,
    page_gaps,
    quotient,
    ticks_of,
    trailing_max,
    trailing_sum,
)
from servetop.analysis.engine_gauges import KV_FULL, describe_before, kv_usages
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.events import StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS

_COLUMNS = (
    "due",
    "sent",
    "ok",
    "failed",
    "output_tokens",
    "prompt_tokens",
    "in_flight",
    "queued",
    "stage",
    "request_rate",
    "running",
    "waiting",
    "preemptions",
    "scrape_end",
)
_GAUGES = ("running", "waiting", "kv")
_BASE_SECONDS = 6.0
LEAST_FULL = 0.5
"""KV usage below which the cache never counts as full, however much the next request needs."""
_MIN_FIRST_TOKENS = 4
"""Minimum first tokens of six seconds for their mean TTFT to count."""
_HELD_SECONDS = 60.0
"""Seconds over which the KV blocks of a running sequence are averaged."""
_EXPORTED_FOR = 5.0
"""Seconds for which a metrics page describes the engine's queue."""
_KNOWN_FOR = 6
"""Ticks for which a gauge without a newer value stays valid: `engine_gauges.STALE_AFTER`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Signals:
    """Columns of consecutive ticks; every array has shape (ticks,), NaN for values that the engine does not export."""

    ends: FloatArray
    """End of each tick, seconds."""
    due: FloatArray
    sent: FloatArray
    ok: FloatArray
    failed: FloatArray
    ended: FloatArray
    """Requests that succeeded or failed."""
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
    scrape_end: FloatArray
    """When the newest metrics page arrived, seconds."""
    kv: FloatArray
    """KV usage, 0..1."""
    needed: FloatArray
    """Fraction of the KV blocks that a mean prompt of the newest requests needs; 0 if unknown."""
    token: FloatArray
    """The same of one token; NaN if unknown."""
    batch: FloatArray
    """The engine's batch-size limit; of several replicas the sum, as of `running`."""
    first_tokens: FloatArray
    """Requests whose first token arrived; `prompt_tokens` are theirs."""
    ttft: FloatArray
    """Sum of their TTFT from due, seconds."""
    served_ttft: FloatArray
    """Sum of their TTFT from sent, seconds."""
    awaiting: FloatArray
    """Requests in flight without a first token, by the client's counts; NaN if responses are not streamed."""
    base_ttft: FloatArray
    """The smallest mean TTFT of six seconds so far, seconds; inf before enough first tokens."""
    finished_tokens: FloatArray
    """Output tokens of the requests that succeeded."""
    squared_outputs: FloatArray
    """The sum of the squares of their lengths."""
    late: FloatArray
    """Requests that an open loop sent more than SLIP_LIMIT after they were due."""
    lagging: FloatArray
    """Fraction of the senders' heartbeats that were later than LOOP_LAG_LIMIT; 0 if the kernel stamps arrivals."""
    throttled: BoolArray
    """Whether the clocks of a GPU were throttled."""

    @classmethod
    def of(
        cls,
        history: TickHistory,
        start: int,
        stop: int,
        *,
        facts: EngineFacts | None,
        stages: Sequence[StageChange] = (),
        loaded: bool = True,
    ) -> Signals:
        """Read ticks `start` to `stop`; the stages and the facts say what the samples do not contain.

        Unless they are `loaded`, nothing was sent in them, and no tick is read for what a client saw.
        """
        columns = {name: history.column(name, start=start, stop=stop) for name in _COLUMNS}
        used = history.column("kv_blocks_used", start=start, stop=stop)
        usage = history.column("kv_usage", start=start, stop=stop)
        blocks = history.column("kv_blocks_total", start=start, stop=stop)
        total = np.where(np.isnan(blocks), _number(None if facts is None else facts.kv_blocks_total), blocks)
        sizes = history.column("max_num_seqs", start=start, stop=stop)
        closed = np.isinf(columns["request_rate"])
        ends = (np.array(history.ticks.indexes[start:stop], dtype=np.float64) + 1) * TICK_SECONDS
        ticks = history.ticks[start:stop] if loaded else ()
        client = client_columns(ticks) if loaded else dict.fromkeys(CLIENT_SIGNALS, np.zeros(ends.shape))
        return cls(
            ends=ends,
            ended=columns["ok"] + columns["failed"],
            kv=kv_usages(usage, used, blocks),
            awaiting=awaiting_first_token(history, start, stop) if loaded else np.zeros(ends.shape),
            base_ttft=np.full(ends.shape, math.inf),
            needed=prompt_share(ticks, total, facts) if loaded else np.zeros(ends.shape),
            token=token_share(total, facts),
            batch=np.where(np.isnan(sizes), _staged_sizes(ends, stages, facts), sizes),
            late=np.where(closed, 0.0, client.pop("late")),
            throttled=history.column("throttled", start=start, stop=stop) > 0,
            **client,
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

    def with_base_ttft(self, *, judged: int) -> Signals:
        """Return the ticks with the smallest TTFT so far; that of the first `judged` ticks is known."""
        window = ticks_of(_BASE_SECONDS)
        counts, sums = trailing_sum(self.first_tokens, window), trailing_sum(self.served_ttft, window)
        means = np.divide(sums, counts, out=np.full(sums.shape, math.inf), where=counts >= _MIN_FIRST_TOKENS)
        before = self.base_ttft[judged - 1 : judged]
        found = np.minimum.accumulate(np.concatenate([before, means[judged:]]))[before.size :]
        return replace(self, base_ttft=np.concatenate([self.base_ttft[:judged], found]))

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
    def overdue(self) -> FloatArray:
        """Requests without a first token above twice those of an idle engine; NaN while the engine exports its queue.

        A server that is too busy to answer its scrapes exports nothing for that time.
        """
        unknown = np.isinf(self.base_ttft)
        usual = 2 * np.where(unknown, 0.0, self.base_ttft) * self.throughput
        exported = trailing_sum(~np.isnan(self.waiting), ticks_of(_EXPORTED_FOR)) > 0
        above = np.where(unknown, 0.0, np.maximum(self.awaiting - usual, 0.0))
        return np.where(exported, math.nan, above)

    @cached_property
    def page_arrived(self) -> IntArray:
        """The newest tick up to each one in which a metrics page arrived; 0 also before the first."""
        return np.asarray(np.maximum.accumulate(np.where(new_pages(self._pages), np.arange(len(self)), 0)))

    @cached_property
    def page_gap(self) -> FloatArray:
        """The seconds from the page before to the newest one of each tick; 0 before the second."""
        return np.asarray(page_gaps(self._pages)[self.page_arrived])

    @cached_property
    def _pages(self) -> FloatArray:
        return last_known(self.scrape_end)

    @property
    def queue(self) -> FloatArray:
        """Requests that wait at the engine: as exported, else `overdue`."""
        return np.where(np.isnan(self.waiting), self.overdue, self.waiting)

    @cached_property
    def most_running(self) -> FloatArray:
        """The most sequences that ran during the last minute: the batch limit is at least that; NaN if unknown."""
        found = trailing_max(self.running, ticks_of(60))
        return np.where(np.isinf(found), math.nan, found)

    @cached_property
    def kv_is_full(self) -> BoolArray:
        """Whether KV_FULL of the blocks are in use, or too many for another prompt while requests wait."""
        return (self.kv >= KV_FULL) | ((self.kv >= self.kv_level) & (self.waiting > 0))

    @cached_property
    def kv_level(self) -> FloatArray:
        """The usage from which another request does not fit; at most KV_FULL, at least half of the blocks."""
        needed = np.maximum(trailing_max(self.needed, ticks_of(10)), self._reserved)
        return np.asarray(np.clip(1 - needed, LEAST_FULL, KV_FULL))

    @property
    def _reserved(self) -> FloatArray:
        """The fraction of the KV blocks that the next request needs if the engine reserves those of its output."""
        window, known = ticks_of(_HELD_SECONDS), (self.running > 0) & ~np.isnan(self.kv)
        held = (trailing_sum(np.where(known, each, 0.0), window) for each in (self.kv, self.running))
        prompts, ended = ((self.prompt_tokens, self.first_tokens), (self.squared_outputs, self.finished_tokens))
        prompt, output = (quotient(*(trailing_sum(each, window) for each in pair)) for pair in (prompts, ended))
        return reserved_share(quotient(*held), prompt=prompt, output=output, token=self.token)

    @cached_property
    def throughput(self) -> FloatArray:
        """Requests/s completed or due over ten seconds, whichever is more."""
        window = ticks_of(10)
        done, due = trailing_sum(self.ok, window), trailing_sum(self.due, window)
        return np.maximum(done, due) / np.minimum(np.arange(1, len(self) + 1), window) / TICK_SECONDS


def awaiting_first_token(history: TickHistory, start: int, stop: int) -> FloatArray:
    """Return the requests in flight without a first token at the end of ticks `start` to `stop`.

    Failed and cancelled requests count as if they had none, so that there are never too many.
    """

    def total(name: str) -> FloatArray:
        before = history.total(name, stop=start) if start else 0.0
        return np.asarray(np.nan_to_num(before) + np.cumsum(history.column(name, start=start, stop=stop)))

    left = total("sent") - total("first_tokens") - total("failed") - total("cancelled")
    return np.clip(left, 0.0, history.column("in_flight", start=start, stop=stop))


def _staged_sizes(ends: FloatArray, stages: Sequence[StageChange], facts: EngineFacts | None) -> FloatArray:
    """Return the batch size of the stage of each tick: the facts of a restarted engine are those of its last start."""
    restarted = facts is None or not facts.changes_batch_size_live
    sized = [stage for stage in stages if restarted and stage.max_num_seqs is not None]
    default = _number(None if facts is None else facts.max_num_seqs)
    sizes = replica_count(facts) * np.array([default, *(_number(stage.max_num_seqs) for stage in sized)])
    return np.asarray(sizes[np.searchsorted([stage.at for stage in sized], ends, side="left")])


def replica_count(facts: EngineFacts | None) -> int:
    """Return the number of servers behind a run."""
    return 1 if facts is None else max(1, len(facts.replica_urls))


_FIELDS = tuple(Signals.__dataclass_fields__)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _held(values: FloatArray) -> FloatArray:
    """Repeat the last known value in place of unknown ones, for a short time."""
    position = np.arange(values.size)
    known = np.maximum.accumulate(np.where(np.isnan(values), -1, position))
    recent = (known >= 0) & (position - known <= _KNOWN_FOR)
    return np.where(recent, values[np.maximum(known, 0)], np.nan)
