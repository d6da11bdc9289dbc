"""The engine page: values and trends of the metrics that no panel shows, at one time of a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from servetop.analysis.engine_gauges import STALE_AFTER
from servetop.analysis.exported.gpu_peaks import GpuPeak, common_peak, with_peak_shares
from servetop.analysis.exported.metric_spec import MetricKind, MetricSpec
from servetop.analysis.exported.metric_values import (
    ExportedValue,
    metric_values,
    missing_metrics,
    periods_between,
    window_period,
)
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.series.scratch import Scratch
from servetop.core.arrays import FloatArray
from servetop.core.interfaces.run_source import NOT_IMPORTED, EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.engines.metrics.series_collector import SERIES_PERIOD

WINDOW = 10.0
"""Seconds over which a value is computed, as on all panels, or longer so that it contains two scrapes."""
_RECENT = 8
"""Scrapes from which the seconds between two are computed."""
_JITTER = 1.2
"""Scrapes are this many times their median distance apart, at most, unless one failed."""
_TREND_STEPS = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds of one cell of a trend; at least two scrapes, and fixed, so that a trend moves by whole cells."""
_NOT_RECORDED = (
    "this recording was made before servetop recorded this page (format 1.6): screen 1 has what it knows of the "
    "engine, such as KV blocks and preemptions; servetop replay sample has this page"
)


class Activity(Enum):
    """What a metric says over the time axis."""

    ACTIVE = "active"
    IDLE = "0 throughout"
    UNMEASURED = "no values"
    """Exported, but nothing was counted, such as the hit rate of a cache without lookups."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricLine:
    """One metric: its value over the window, and its trend."""

    spec: MetricSpec
    label: str
    """The label's value, for one line of several; empty otherwise."""
    source: str
    """The name of its series on the engine's metrics page."""
    value: float
    p90: float | None
    """None unless the metric is a histogram."""
    at_most: float
    """The upper bound of a histogram's first bucket; 0 for other metrics."""
    bucket: tuple[float, float] | None
    """The bounds of the bucket that contains both quantiles; None if there is no such bucket."""
    trend: FloatArray
    """One value per cell, oldest first, NaN for gaps; shape (cells,)."""

    @property
    def activity(self) -> Activity:
        """Whether it has a value other than 0 now or in its trend; a ratio of 0, such as a hit rate, is a result."""
        values = np.array([self.value, math.nan if self.p90 is None else self.p90, *self.trend])
        if np.isnan(values).all():
            return Activity.UNMEASURED
        idle = not np.nanmax(np.abs(values)) > 0 and self.spec.kind is not MetricKind.RATIO
        return Activity.IDLE if idle else Activity.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricGroup:
    """A heading, its metrics, and the names of those that the engine does not export."""

    title: str
    lines: tuple[MetricLine, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnginePage:
    """All groups; none with a reason."""

    groups: tuple[MetricGroup, ...] = ()
    reason: str = ""
    """Why there are no values, in a few words."""
    age: float = math.nan
    """Seconds since the last scrape."""
    outdated: bool = False
    """Whether a scrape is missing."""
    step: float = math.nan
    """Seconds of one cell of a trend."""
    window: float = WINDOW
    """Seconds over which values are computed."""
    note: str = ""
    """Why an active metric has no share of its GPU's peak; empty if it has, or if there is none."""


class EngineMetricsHistory:
    """All scrapes of the engine's further series."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self._history = ScrapeHistory(scratch)
        self._facts: EngineFacts | None = None
        self._specs: tuple[MetricSpec, ...] = ()

    def fold(self, scrapes: Sequence[SeriesScrape]) -> None:
        """Add scrapes, in order of time."""
        self._history.extend(scrapes)

    def show(self, history: ScrapeHistory) -> None:
        """Read another history from now on."""
        self._history = history

    def page(
        self, header: RunHeader, at: float, cells: int, *, until: float, span: float, gpus: Sequence[str] = ()
    ) -> EnginePage:
        """The page at run time `at`, with trends of the `span` seconds before `until`; `gpus` are the engine's."""
        specs = self._specs_of(header.engine)
        reason = self._reason(header, specs, at)
        if reason:
            return EnginePage(reason=reason)
        last = self._history.up_to(at)
        longest = self._interval(last) * _JITTER
        window = max(WINDOW, math.ceil(longest))
        now = window_period(self._history, at - window, at)
        step = trend_step(span, cells, shortest=longest)
        peak, count = common_peak(gpus), min(math.ceil(span / step - 1e-9), cells)
        trends = self._trends(specs, until, step=step, count=count, peak=peak)
        lines = [_line(value, trends) for value in with_peak_shares(metric_values(specs, now), peak)]
        age = at - float(self._history.times([last - 1])[0])
        return EnginePage(
            groups=_groups(specs, lines, missing_metrics(specs, now.columns)),
            age=age,
            outdated=age > max(SERIES_PERIOD, longest) + STALE_AFTER,
            step=step,
            window=window,
            note="" if peak else _no_peak(lines, gpus),
        )

    def _interval(self, count: int) -> float:
        """Median seconds between the last of the first `count` scrapes; 1 unless a Prometheus server made them."""
        times = self._history.times(range(max(count - _RECENT, 0), count))
        return float(np.median(np.diff(times))) if times.size > 1 else SERIES_PERIOD

    def _specs_of(self, facts: EngineFacts | None) -> tuple[MetricSpec, ...]:
        if facts is not self._facts:
            self._facts, self._specs = facts, exported_metrics(facts) if facts else ()
        return self._specs

    def _reason(self, header: RunHeader, specs: Sequence[MetricSpec], at: float) -> str:
        if header.engine is None:
            return "the engine is not ready yet"
        if header.imported is not None:
            return NOT_IMPORTED
        if not header.has_engine_series:
            return _NOT_RECORDED
        if not specs:
            return f"{header.engine.title} has no metrics that servetop can show: give their address with --metrics-url"
        return "" if self._history.up_to(at) else f"no metrics from {header.engine.title} yet"

    def _trends(
        self, specs: Sequence[MetricSpec], until: float, *, step: float, count: int, peak: GpuPeak | None
    ) -> dict[tuple[MetricSpec, str], FloatArray]:
        """Return the last `count` whole steps of each metric, between multiples of `step`."""
        newest = math.floor(until / step + 1e-9)
        edges = [number * step for number in range(newest - count, newest + 1)]
        positions = [self._history.up_to(edge) - 1 for edge in edges]
        known = [position for position in positions if position >= 0]
        if len(known) < 2:
            return {}
        values = with_peak_shares(metric_values(specs, periods_between(self._history, known)), peak)
        gap = np.full(len(positions) - len(known), np.nan)
        return {(each.spec, each.label): np.concatenate([gap, each.values]) for each in values}


def trend_step(span: float, cells: int, *, shortest: float = 0.0) -> float:
    """Return the shortest step, of at least `shortest` seconds, with which `span` seconds fit into `cells` cells."""
    least = max(span / max(cells, 1), shortest)
    return next((step for step in _TREND_STEPS if least <= step * (1 + 1e-9)), least)


def _groups(
    specs: Sequence[MetricSpec], lines: Sequence[MetricLine], missing: Sequence[MetricSpec]
) -> tuple[MetricGroup, ...]:
    return tuple(
        MetricGroup(
            title=title,
            lines=tuple(line for line in lines if line.spec.group == title),
            missing=tuple(spec.name.rstrip(":") for spec in missing if spec.group == title),
        )
        for title, _ in itertools.groupby(specs, key=lambda spec: spec.group)
    )


def _no_peak(lines: Sequence[MetricLine], gpus: Sequence[str]) -> str:
    names = dict.fromkeys(line.spec.peak_share for line in lines if line.activity is Activity.ACTIVE)
    shares = " and ".join(name for name in names if name)
    which = f"servetop has no data sheet of {', '.join(gpus)}" if gpus else "no GPU was recorded"
    which = f"GPUs of several kinds: {', '.join(gpus)}" if len(gpus) > 1 else which
    return f"{shares} unknown: {which}" if shares else ""


def _line(value: ExportedValue, trends: dict[tuple[MetricSpec, str], FloatArray]) -> MetricLine:
    return MetricLine(
        spec=value.spec,
        label=value.label,
        source=value.source,
        value=float(value.values[-1]),
        p90=None if value.p90 is None else float(value.p90[-1]),
        at_most=value.first_bound,
        bucket=None if value.buckets is None or np.isnan(value.buckets[-1, 0]) else tuple(value.buckets[-1]),
        trend=trends.get((value.spec, value.label), np.empty(0)),
    )
