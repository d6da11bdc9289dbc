"""What a summary needs of a run besides its requests: ticks, engine samples and stages as columns, read once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.energy import EnergyMeter, energy_meters
from servetop.analysis.verdicts.consistency import ClientTokens, increase
from servetop.analysis.verdicts.steady_state import TickColumns
from servetop.core.arrays import FloatArray
from servetop.core.bounds import bounded
from servetop.core.events import EngineSample, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader

ENGINE_COUNTERS = (
    "preemptions_total", "generation_tokens_total", "prompt_tokens_total", "prefix_cache_hits_total",
    "prefix_cache_queries_total",
)  # fmt: skip
ENGINE_GAUGES = ("running", "waiting", "kv_usage", "kv_blocks_used", "kv_blocks_total", "max_num_seqs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `start` up to, not including, `until`; seconds."""

    start: float = -math.inf
    until: float = math.inf

    def holds(self, instants: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which instants lie in it."""
        return (instants >= self.start) & (instants < self.until)

    def overlaps(self, other: Period) -> bool:
        """They have some time in common."""
        return self.start < other.until and other.start < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePeriod:
    """A stage that put load on the engine, and when."""

    change: StageChange
    """Its last announcement: what was in force at its end."""
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
    """Of requests whose first token came in the tick."""
    finished_tokens: FloatArray
    """Output tokens of requests that ended well in the tick."""
    ok: FloatArray
    """Requests that ended well."""
    load_ticks: TickColumns
    """What the search for a steady state needs."""
    loop_lags: Sequence[LogHistogram]
    itl_uncertainties: Sequence[LogHistogram]
    chunks: FloatArray
    """That came in each tick."""
    stamped: FloatArray
    """Of those, the ones whose times the kernel told."""
    scrape_starts: FloatArray
    """Shape (scrapes,), as the other engine columns."""
    scrape_ends: FloatArray
    engine: dict[str, FloatArray]
    """ENGINE_GAUGES, and the increase of each of ENGINE_COUNTERS since the scrape before; NaN is not exported."""
    meters: Sequence[EnergyMeter] = ()
    """Of the GPUs that tell their energy or power."""

    @classmethod
    def load(cls, reader: RecordingReader) -> RunColumns:
        """Read everything but the requests."""
        reader.refresh()
        reader.check_requests()
        ticks, samples = reader.ticks(), reader.engine_samples()
        return cls(
            header=reader.header,
            end=reader.end,
            stages=_stage_periods(reader.stages()),
            tick_ends=np.array([tick.end for tick in ticks], dtype=np.float64),
            in_flight=_gauges(ticks, "in_flight"),
            queued=_gauges(ticks, "queued"),
            limits=np.nan_to_num(_gauges(ticks, "max_concurrency"), nan=math.inf),
            output_tokens=np.array([tick.client.output_tokens for tick in ticks], dtype=np.float64),
            prompt_tokens=np.array([tick.client.prompt_tokens for tick in ticks], dtype=np.float64),
            finished_tokens=np.array([tick.client.output_len.total for tick in ticks], dtype=np.float64),
            ok=np.array([tick.client.ok for tick in ticks], dtype=np.float64),
            load_ticks=TickColumns.of(ticks),
            loop_lags=[tick.client.loop_lag for tick in ticks],
            itl_uncertainties=[tick.client.itl_uncertainty for tick in ticks],
            chunks=np.array([tick.client.chunks for tick in ticks], dtype=np.float64),
            stamped=np.array([tick.client.stamped for tick in ticks], dtype=np.float64),
            scrape_starts=_column(samples, "scrape_start"),
            scrape_ends=_column(samples, "scrape_end"),
            engine=_engine_columns(samples),
            meters=energy_meters(reader.gpu_samples()),
        )

    def with_samples(self, samples: Sequence[EngineSample]) -> RunColumns:
        """The same run, with other samples of the engine: those of one server of several."""
        starts, ends = _column(samples, "scrape_start"), _column(samples, "scrape_end")
        return replace(self, scrape_starts=starts, scrape_ends=ends, engine=_engine_columns(samples))

    @property
    def scraped_at(self) -> FloatArray:
        """Middle of each scrape."""
        return (self.scrape_starts + self.scrape_ends) / 2

    @property
    def warm_at(self) -> float:
        """When the warm-up was over, which comes before all else; -inf without one."""
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


def _engine_columns(samples: Sequence[EngineSample]) -> dict[str, FloatArray]:
    gauges = {name: _column(samples, name) for name in ENGINE_GAUGES}
    return gauges | {name: increase(_column(samples, name)) for name in ENGINE_COUNTERS}


def _column(samples: Sequence[EngineSample], name: str) -> FloatArray:
    return np.array([bounded(getattr(sample, name)) for sample in samples], dtype=np.float64)


def _gauges(ticks: Sequence[Tick], name: str) -> FloatArray:
    return np.array([getattr(tick.client.gauges, name) for tick in ticks], dtype=np.float64)


def _stage_periods(changes: Sequence[StageChange]) -> list[StagePeriod]:
    """Announcements of one stage that follow each other are one period; stages without load are none."""
    periods: list[StagePeriod] = []
    ends = [*(change.at for change in changes), math.inf][1:]
    loaded = [(change, end) for change, end in zip(changes, ends, strict=True) if change.request_rate is not None]
    for _, group in itertools.groupby(loaded, key=lambda pair: pair[0].index):
        pairs = list(group)
        period = Period(start=pairs[0][0].at, until=pairs[-1][1])
        periods.append(StagePeriod(change=pairs[-1][0], period=period))
    return periods
