"""Loads a recording as a run to compare: its stages with their requests, token gaps and engine counters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad, names_batch
from servetop.analysis.columns.request_columns import RequestColumns, StageRequests
from servetop.analysis.columns.run_columns import RunColumns, StagePeriod
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.stage_sample import Cumulative, StageSample, TokenGaps
from servetop.analysis.comparison.start_spread import ELSEWHERE, ON_GPU, SAME, StartSpread
from servetop.analysis.cost.hourly_price import hourly_cost, recorded_prices
from servetop.analysis.engine_gauges import describe_before
from servetop.analysis.summary.request_metrics import latencies_by_request, meets_objectives, no_itl_reason
from servetop.analysis.summary.steady_metrics import steady_windows
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.config_values.price import HourlyPrice
from servetop.core.events import RequestStatus
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.read.load_requests import load_stage_requests
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader

_SIMULATOR = "sim"
_LATENCIES = ("ttft", "tpot", "e2el")
_BLOCK = 100_000
"""Requests whose columns are in memory at once."""


def load_arm_run(reader: RecordingReader, *, objectives: Mapping[str, float] | None = None) -> ArmRun:
    """Load all stages with requests, except warm-ups.

    `objectives` (seconds by metric) replaces those of the run for its goodput. Takes about 100 bytes per request.
    """
    return arm_run_of(load_run(reader), load_stage_requests(reader), name=str(reader.path), objectives=objectives)


def arm_run_of(
    run: RunColumns,
    requests: StageRequests,
    *,
    name: str,
    objectives: Mapping[str, float] | None = None,
    price: HourlyPrice | None = None,
) -> ArmRun:
    """Return the same from columns that were already read; `price` replaces the recorded one of its servers."""
    recorded = recorded_prices(run.header.config)
    price = recorded.server if price is None and recorded is not None else price
    windows = steady_windows(run)
    source = _Source(
        run=run,
        requests=requests,
        counters=_counters(run),
        gaps=_gaps(run),
        goodput=run.header.config.goodput if objectives is None else objectives,
        price_per_hour=None if price is None else hourly_cost(price, len(run.meters) or None),
        names_batch=names_batch(run.header.config, [stage.change for stage in run.every_stage]),
    )
    stages = []
    for index, stage in _compared_stages(run, requests).items():
        stages.append(source.sample(stage, requests.of_stage(index), window=windows[index]))
    return ArmRun(name=name, stages=stages, start_spread=_start_spread(run))


def _start_spread(run: RunColumns) -> StartSpread:
    """None for the simulator in virtual time, which has no address; in real time it shares processors as engines do."""
    facts = run.header.engine
    if facts is not None and facts.name == _SIMULATOR and facts.url is None:
        return SAME
    return ON_GPU if run.gpus else ELSEWHERE


def _compared_stages(run: RunColumns, requests: StageRequests) -> dict[int, StagePeriod]:
    """Return the stages that count and have requests, except warm-ups, by their number."""
    present = set(np.unique(requests.stages).tolist())
    return {
        stage.change.index: stage for stage in run.stages if not stage.change.warmup and stage.change.index in present
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """What all stages of a run share."""

    run: RunColumns
    requests: StageRequests
    counters: Mapping[str, Cumulative]
    gaps: TokenGaps | None
    goodput: Mapping[str, float]
    price_per_hour: float | None
    names_batch: bool
    """Whether the loads of the run have a batch size."""

    def sample(self, stage: StagePeriod, rows: slice, *, window: SteadyWindow) -> StageSample:
        """Return the measurements of one stage, from its steady window or its whole load."""
        columns = self.requests.columns.part(rows)
        ok = columns.with_status(RequestStatus.OK)
        latencies, good = self._latencies(columns)
        if reason := no_itl_reason(columns.sized[ok]):
            latencies["tpot"] = np.full(columns.due.size, math.nan)
        load = self._load(stage)
        start, until = self._period(
            stage, columns.due, columns.done_at, window=window, ramps=load.ramp_from is not None
        )
        return StageSample(
            load=load,
            seed=self.run.header.config.seed,
            start=start,
            until=until,
            steady=window.start is not None,
            reason=window.reason,
            number=self.requests.ids[rows],
            due=columns.due,
            sent=columns.sent,
            done_at=columns.done_at,
            ok=ok,
            latencies=latencies,
            prompt_tokens=columns.prompt_tokens.astype(np.float64),
            output_tokens=columns.output_tokens.astype(np.float64),
            good=good if self.goodput else None,
            counters=self._counters(start, until),
            gaps=None if reason else self.gaps,
            price_per_hour=self.price_per_hour,
            index=stage.change.index,
        )

    def _counters(self, start: float, until: float) -> Mapping[str, Cumulative]:
        """Return the counters without the KV usage of a stage that no page of its own describes."""
        usage = self.counters.get("kv_usage")
        if usage is None or not _page_age(self.run) or ((usage.at > start) & (usage.at <= until)).any():
            return self.counters
        return {name: counter for name, counter in self.counters.items() if name != "kv_usage"}

    def _latencies(self, requests: RequestColumns) -> tuple[dict[str, FloatArray], BoolArray]:
        """The latencies of successful requests, else NaN, and which meet the objectives; in blocks, to save memory."""
        count = requests.due.size
        latencies = {name: np.full(count, math.nan) for name in _LATENCIES}
        good = np.zeros(count, dtype=np.bool_)
        for first in range(0, count, _BLOCK):
            block = slice(first, first + _BLOCK)
            columns = requests.part(block)
            ok, per_request = columns.with_status(RequestStatus.OK), latencies_by_request(columns)
            for name, values in latencies.items():
                values[block][ok] = per_request[name][ok]
            good[block] = meets_objectives(per_request, self.goodput, ok=ok)
        return latencies, good

    def _load(self, stage: StagePeriod) -> StageLoad:
        steered = self.run.attempts[stage.change.index].steered
        load = dataclasses.replace(StageLoad.of(stage.change), steered=steered)
        return load if self.names_batch else dataclasses.replace(load, max_num_seqs=None)

    def _period(
        self, stage: StagePeriod, due: FloatArray, done_at: FloatArray, *, window: SteadyWindow, ramps: bool
    ) -> tuple[float, float]:
        """The steady window, or else the time from the first request due to the last one, without the cool-down."""
        first, last = float(due[0]), float(due[-1])
        if ramps:
            seconds = stage.change.duration
            return stage.period.start, last if seconds is None else stage.period.start + seconds
        if window.start is not None and window.end is not None:
            return window.start, window.end
        if last - first < TICK_SECONDS:  # all at once: until the last one ended
            last = float(np.nanmax(done_at, initial=first))
        return first, max(last - self.run.header.config.cooldown, first) + TICK_SECONDS / 1000


def _counters(run: RunColumns) -> dict[str, Cumulative]:
    """Return the quantities that accumulate over time, as far as they were measured."""
    counters = {
        "output_tokens": Cumulative.of_steps(run.tick_ends, run.output_tokens),
        "tokens": Cumulative.of_steps(run.tick_ends, run.prompt_tokens + run.output_tokens),
    }
    preemptions = run.engine["preemptions_total"]
    if not np.isnan(preemptions).all():
        counters["preemptions"] = Cumulative.of_steps(run.scraped_at, np.nan_to_num(preemptions))
    usage = _kv_usage(run)
    if usage is not None:
        counters["kv_usage"] = usage
    if run.meters and run.tick_ends.size:
        joules = [np.interp(run.tick_ends, meter.at, meter.joules) for meter in run.meters]
        counters["joules"] = Cumulative(run.tick_ends, np.sum(joules, axis=0))
    return counters


def _kv_usage(run: RunColumns) -> Cumulative | None:
    """KV usage x seconds, without the pages that may describe the time before their stage; the next own page counts."""
    starts, age = np.array([stage.change.at for stage in run.every_stage]), _page_age(run)
    usage = run.engine["kv_usage"]
    known = ~np.isnan(usage) & ~describe_before(run.scraped_at, starts, page_age=age)
    if known.sum() < 2:
        return None
    at, values = run.scraped_at[known], usage[known]
    if age and starts.size:
        at, values = np.insert(at, 0, min(starts[0], at[0])), np.insert(values, 0, values[0])
    return Cumulative.of_steps(at, values * np.diff(at, prepend=at[0]))


def _page_age(run: RunColumns) -> float:
    return 0.0 if run.header.engine is None else run.header.engine.page_age


def _gaps(run: RunColumns) -> TokenGaps | None:
    if not any(each.buckets.size for each in run.token_gaps):
        return None
    middles: FloatArray = run.tick_ends - TICK_SECONDS / 2
    return TokenGaps(middles, run.token_gaps)
