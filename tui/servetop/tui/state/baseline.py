"""The baseline as of one frame: its series on the run's time axis, and its values at the time that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.live_stats import Percentiles
from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.braille import SWATCHES, ChartLine
from servetop.tui.drawing.text_runs import Run
from servetop.tui.state.baseline_run import BaselineRun

STYLE = "baseline"
"""Style of the baseline's lines and of everything that is about it."""
_DASH, _SHADE = "fine", "faint"
_INCOMPARABLE = DifferenceKind.WORKLOAD


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baseline:
    """The baseline on the time axis of a frame. All arrays have shape (times,), NaN where it has no counterpart."""

    run: BaselineRun
    names: tuple[str, str] = ("", "")
    """Of the run on the screen and of the baseline."""
    changes: tuple[ManifestDifference, ...] = ()
    """What differs between the manifests of both runs; `a` is the baseline's value."""
    times: FloatArray
    """On the clock of the run on the screen; they may reach beyond the playhead."""
    rates: Mapping[str, FloatArray]
    """Trailing means per second of each of `COUNTS`."""
    gauges: Mapping[str, FloatArray]
    """Values of each of `GAUGES`."""
    latencies: Mapping[str, FloatArray]
    """p50, p90 and p99 by metric; shape (3, times)."""
    rates_now: Mapping[str, float] = field(default_factory=dict)
    """Means over the sliding window at the cursor, else at the playhead."""
    gauges_now: Mapping[str, float] = field(default_factory=dict)
    latencies_now: Mapping[str, Percentiles] = field(default_factory=dict)

    @property
    def changed_keys(self) -> tuple[str, ...]:
        """The keys whose values are known to differ."""
        return tuple(change.key for change in self.changes if not change.unknown)

    @property
    def incomparable_keys(self) -> tuple[str, ...]:
        """Those that make figures of both runs incomparable, such as the model."""
        return tuple(change.key for change in self.changes if change.kind is _INCOMPARABLE and not change.unknown)

    @property
    def name(self) -> str:
        """The name of the baseline."""
        return self.names[1]

    @property
    def swatch(self) -> Run:
        """Three cells of its line, for legends."""
        return (SWATCHES[_DASH], STYLE)

    def lines(self, values: FloatArray, *, beside: ChartLine | None = None, over_area: bool = False) -> list[ChartLine]:
        """Return the baseline's line, with the difference from the run's own line `beside` it shaded."""
        line = ChartLine(times=self.times, values=values, style=STYLE, dash=_DASH, cuts=over_area)
        if beside is None:
            return [line]
        shade = ChartLine(times=beside.times, values=beside.values, style=_SHADE, down_to=self.at(values, beside.times))
        return [shade, line]

    def at(self, values: FloatArray, times: FloatArray) -> FloatArray:
        """Those of the values that are at `times`, each of which is one of the own times; NaN at others."""
        if not self.times.size:
            return np.full(times.shape, np.nan)
        positions = np.clip(np.searchsorted(self.times, times - TICK_SECONDS / 2), 0, self.times.size - 1)
        return np.where(np.abs(self.times[positions] - times) < TICK_SECONDS / 2, values[positions], np.nan)


def distinct_names(run: tuple[str, str], baseline: tuple[str, str]) -> tuple[str, str]:
    """The names of a run and its baseline, each from (label, name of the file): labels, unless both have the same."""
    first, second = (label or name for label, name in (run, baseline))
    return (run[1], baseline[1]) if first == second else (first, second)
