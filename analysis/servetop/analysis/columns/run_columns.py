"""Ticks, engine samples and stages of a run as columns: what a summary needs besides the requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.energy import EnergyMeter
from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.verdicts.consistency import ClientTokens, increase
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.bounds import bounded
from servetop.core.events import EngineSample, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader

ENGINE_COUNTERS = (
    "preemptions_total", "generation_tokens_total", "prompt_tokens_total", "prefix_cache_hits_total",
    "prefix_cache_queries_total",
)  # fmt: skip
ENGINE_GAUGES = ("running", "waiting", "kv_usage", "kv_blocks_used", "kv_blocks_total", "max_num_seqs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `start` up to, but not including, `until`; seconds."""

    start: float = -math.inf
    until: float = math.inf

    def holds(self, instants: FloatArray) -> BoolArray:
        """Which instants lie in it."""
        return (instants >= self.start) & (instants < self.until)

    def overlaps(self, other: Period) -> bool:
        """Whether the two have some time in common."""
        return self.start < other.until and other.start < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePeriod:
    """A stage that put load on the engine, and when."""

    change: StageChange
    """Its last change: the settings in force at its end."""
    period: Period


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunColumns:
    """Columns over the ticks and over the scrapes of one run, in order of time."""

    header: RunHeader
    end: RunEnd | None
    stages: Sequence[StagePeriod]
    tick_ends: FloatArray
    """Shape (ticks,), as the other tick columns."""
    in_flight: FloatArray
    queued: FloatArray
    limits: FloatArray
    """Concurrency limit in force at each tick's end; inf without one."""
    output_tokens: FloatArray
    prompt_tokens: FloatArray
    """Prompt tokens of requests whose first token arrived in the tick."""
    finished_tokens: FloatArray
    """Output tokens of requests that ended well in the tick."""
    ok: FloatArray
    """Requests that ended well in the tick."""
    load_ticks: TickColumns
    """Input of the search for a steady state."""
    loop_lags: Sequence[LogHistogram]
    itl_uncertainties: Sequence[LogHistogram]
    chunks: FloatArray
    """Chunks that arrived in each tick."""
    stamped: FloatArray
    """Chunks whose arrival the kernel stamped."""
    scrape_starts: FloatArray
    """Shape (scrapes,), as the other engine columns."""
    scrape_ends: FloatArray
    engine: dict[str, FloatArray]
    """ENGINE_GAUGES, and the increase of each of ENGINE_COUNTERS since the previous scrape; NaN is not exported."""
    meters: Sequence[EnergyMeter] = ()
    """The GPUs that report their energy or power."""

    def with_samples(self, samples: Sequence[EngineSample]) -> RunColumns:
        """The same run with the engine samples of one of several servers."""
        starts, ends = sample_column(samples, "scrape_start"), sample_column(samples, "scrape_end")
        return replace(self, scrape_starts=starts, scrape_ends=ends, engine=engine_columns(samples))

    @property
    def scraped_at(self) -> FloatArray:
        """Middle of each scrape."""
        return (self.scrape_starts + self.scrape_ends) / 2

    @property
    def warm_at(self) -> float:
        """End of the warm-up, which precedes all other stages; -inf without one."""
        return max((each.period.until for each in self.stages if each.change.warmup), default=-math.inf)

    @property
    def client_tokens(self) -> ClientTokens:
        """The client's token counts over the whole run."""
        return ClientTokens(tick_ends=self.tick_ends, received=self.output_tokens, finished=self.finished_tokens)

    def limit_at(self, instants: FloatArray) -> FloatArray:
        """The concurrency limit in force at each instant, to the tick."""
        if not self.limits.size:
            return np.full(instants.shape, math.inf)
        tick = np.searchsorted(self.tick_ends, instants, side="right")
        return np.asarray(self.limits[np.minimum(tick, self.limits.size - 1)])


def engine_columns(samples: Sequence[EngineSample]) -> dict[str, FloatArray]:
    """Gauges, and the increases of counters, by name."""
    gauges = {name: sample_column(samples, name) for name in ENGINE_GAUGES}
    return gauges | {name: increase(sample_column(samples, name)) for name in ENGINE_COUNTERS}


def sample_column(samples: Sequence[EngineSample], name: str) -> FloatArray:
    """One field of each sample; NaN where not exported."""
    return np.array([bounded(getattr(sample, name)) for sample in samples], dtype=np.float64)
