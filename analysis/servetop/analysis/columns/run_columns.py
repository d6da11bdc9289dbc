"""Ticks, engine samples and stages of a run as columns, for summaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np

from servetop.analysis.cells.attempts import CellAttempt
from servetop.analysis.energy import EnergyMeter
from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.trust.consistency import ClientTokens, increase
from servetop.analysis.trust.engine_times import TOTALS, ClientTimes
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.bounds import all_bounded
from servetop.core.events import EngineSample, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.merged.sample_columns import HighestColumns
from servetop.core.merged.sample_rows import SampleRow
from servetop.core.tick import TICK_SECONDS, SenderClass

ENGINE_COUNTERS = (
    "preemptions_total",
    "generation_tokens_total",
    "prompt_tokens_total",
    "prefix_cache_hits_total",
    "prefix_cache_queries_total",
    "requests_finished_total",
    "queue_seconds_total",
    "queued_requests_total",
    "requests_ended_total",
    "requests_failed_total",
    *(name for pair in TOTALS.values() for name in pair),
)
ENGINE_GAUGES = ("running", "waiting", "kv_usage", "kv_blocks_used", "kv_blocks_total", "max_num_seqs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `start` up to, but not including, `until`; seconds."""

    start: float = -math.inf
    until: float = math.inf
    pauses: Sequence[Period] = ()
    """Parts that are left out, in which servetop prepares the engine for a load."""

    def contains(self, times: FloatArray) -> BoolArray:
        """Return a mask of the times within the period."""
        within = (times >= self.start) & (times < self.until)
        for pause in self.pauses:
            within &= ~pause.contains(times)
        return within

    def overlaps(self, other: Period) -> bool:
        """Whether the two periods have some time in common."""
        return self.start < other.until and other.start < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePeriod:
    """A stage with load, and its period."""

    change: StageChange
    """Its last change, with the settings at its end."""
    period: Period


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunStages:
    """The stages of one run, and which of them count."""

    header: RunHeader
    end: RunEnd | None
    stages: Sequence[StagePeriod]
    """The stages whose requests count, in order of time."""
    pauses: Sequence[Period] = ()
    """Times before and between the stages in which servetop prepared the engine."""
    attempts: Mapping[int, CellAttempt] = field(default_factory=dict)
    """The attempts at cells by number of the stage, also of stages that do not count."""
    superseded: Sequence[StagePeriod] = ()
    """Stages that were cut short or failed, whose cells another stage measured."""

    @property
    def every_stage(self) -> list[StagePeriod]:
        """All stages with a load in order of time, including superseded ones."""
        return sorted((*self.stages, *self.superseded), key=lambda each: each.period.start)

    @property
    def left_out(self) -> tuple[Period, ...]:
        """The pauses, and the times of the stages that do not count."""
        return (*self.pauses, *(each.period for each in self.superseded))

    @property
    def warm_at(self) -> float:
        """The end of the warm-up, which precedes all other stages; -inf if there is none."""
        return max((each.period.until for each in self.stages if each.change.warmup), default=-math.inf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunColumns(RunStages):
    """Columns of the ticks and scrapes of one run, in order of time."""

    tick_ends: FloatArray
    """Shape (ticks,), like the other tick columns."""
    in_flight: FloatArray
    queued: FloatArray
    limits: FloatArray
    """Concurrency limit at each tick's end; inf if there is none."""
    output_tokens: FloatArray
    prompt_tokens: FloatArray
    """Prompt tokens of requests whose first token arrived in the tick."""
    finished_tokens: FloatArray
    """Output tokens of requests that succeeded in the tick."""
    ok: FloatArray
    """Requests that succeeded in the tick."""
    load_ticks: TickColumns
    """Input of the search for a steady state."""
    token_gaps: Sequence[LogHistogram]
    """Inter-token latencies in each tick."""
    client_times: ClientTimes
    sender_classes: Sequence[SenderClass | None]
    """The scheduling class of the senders in each tick."""
    loop_lags: Sequence[LogHistogram]
    itl_uncertainties: Sequence[LogHistogram]
    chunks: FloatArray
    """Chunks that arrived in each tick."""
    stamped: FloatArray
    """Chunks with an arrival timestamp from the kernel."""
    scrape_starts: FloatArray
    """Shape (scrapes,), like the other engine columns."""
    scrape_ends: FloatArray
    engine: dict[str, FloatArray]
    """ENGINE_GAUGES, and the increases of ENGINE_COUNTERS since the previous scrape; NaN if not exported."""
    meters: Sequence[EnergyMeter] = ()
    """The GPUs that report their energy or power."""
    gpus: tuple[str, ...] = ()
    """The different names of the engine's GPUs."""

    def with_samples(self, samples: Sequence[SampleRow]) -> RunColumns:
        """Return the same run with the engine samples of one of several servers."""
        column = HighestColumns(samples).column
        starts, ends = column("scrape_start"), column("scrape_end")
        return replace(self, scrape_starts=starts, scrape_ends=ends, engine=engine_columns(column))

    @property
    def scraped_at(self) -> FloatArray:
        """The middle of each scrape."""
        return (self.scrape_starts + self.scrape_ends) / 2

    @property
    def client_tokens(self) -> ClientTokens:
        """The client's token counts over the whole run, without the stages that do not count."""
        received, finished = (np.where(self._counted, each, 0.0) for each in (self.output_tokens, self.finished_tokens))
        return ClientTokens(tick_ends=self.tick_ends, received=received, finished=finished)

    @property
    def counted_times(self) -> ClientTimes:
        """The client's latencies over the whole run, without the stages that do not count."""
        return self.client_times.where(self._counted)

    @property
    def _counted(self) -> BoolArray:
        """A mask of the ticks whose middle lies in no stage that does not count."""
        return Period(pauses=[each.period for each in self.superseded]).contains(self.tick_ends - TICK_SECONDS / 2)

    def limit_at(self, times: FloatArray) -> FloatArray:
        """Return the concurrency limit of the tick at each time."""
        if not self.limits.size:
            return np.full(times.shape, math.inf)
        tick = np.searchsorted(self.tick_ends, times, side="right")
        return np.asarray(self.limits[np.minimum(tick, self.limits.size - 1)])


def engine_columns(column: Callable[[str], FloatArray]) -> dict[str, FloatArray]:
    """Return the gauges and the increases of counters by name; `column` returns a field of each sample."""
    gauges = {name: column(name) for name in ENGINE_GAUGES}
    return gauges | {name: increase(column(name)) for name in ENGINE_COUNTERS}


def sample_column(samples: Sequence[EngineSample], name: str) -> FloatArray:
    """Return one field of each sample; NaN if not exported."""
    return all_bounded(list(map(attrgetter(name), samples)), name=name)
