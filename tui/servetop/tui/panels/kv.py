"""The engine's KV blocks: how full its memory for running requests is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from servetop.core.stats import LiveStats
from servetop.tui import formats
from servetop.tui.braille import Trace
from servetop.tui.charts import Axes, Bars, block_bars, chart, gauge
from servetop.tui.exported import staleness, why_missing
from servetop.tui.lines import Row, Run, placard
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.run_so_far import Moment

NEARLY_FULL = 0.9


class KvPanel(TimeChart):
    """KV blocks used of all, and their share over time."""

    def title(self, moment: Moment) -> Sequence[Row]:
        """Share and blocks."""
        if why_missing(moment, "kv_usage", "kv_blocks_used"):
            return [[("KV blocks", "title")]]
        used, total = kv_blocks(moment)
        share = kv_share(moment.stats)
        full: Run = (" ▲ nearly full", "warn") if share > NEARLY_FULL else ("", "")
        parts: list[Row] = [[("KV blocks ", "title"), (formats.percent(share), "strong")]]
        if used is not None and total is not None:
            parts.append([(formats.exact(used), "strong"), (f"/{formats.exact(total)}", "")])
        return [*parts, [full]] if full[0] else parts

    def subtitle(self, moment: Moment) -> Row:
        """The sample's age, when it is old."""
        return [(staleness(moment), "warn")]

    def watch_moment(self, moment: Moment | None) -> None:
        """A nearly full cache colours the frame."""
        super().watch_moment(moment)
        self.set_class(moment is not None and kv_share(moment.stats) > NEARLY_FULL, "-full")

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """See `draw_kv`, or why there is nothing to draw."""
        missing = why_missing(moment, "kv_usage", "kv_blocks_used")
        if missing:
            return placard(missing, width=width, height=height)
        axes = replace(self.axes(moment), limit=1.0, label=lambda share: f"{share:.0%}")
        return draw_kv(moment.stats, axes, width, height)


def draw_kv(stats: LiveStats, axes: Axes, width: int, height: int) -> list[Row]:
    """A bar and an area over time."""
    share, series = kv_share(stats), stats.series
    style = "vermilion" if share > NEARLY_FULL else "sky"
    bar = gauge(share, width=width, style=style)
    if height < 6:
        bars = Bars(times=series.times, values=series.kv_usage, style=style)
        return [bar, *block_bars(bars, axes, width=width, height=height - 1)] if height > 1 else [bar]
    area = Trace(times=series.times, values=series.kv_usage, style=style, area=True)
    return [bar, _prefix_cache(stats), *chart([area], axes, width=width, height=height - 2)]


def kv_share(stats: LiveStats) -> float:
    """Share of KV blocks in use at this instant; NaN where it is not known."""
    sample = stats.engine
    if sample is None:
        return math.nan
    if sample.kv_usage is not None:
        return sample.kv_usage
    if sample.kv_blocks_used is not None and sample.kv_blocks_total:
        return sample.kv_blocks_used / sample.kv_blocks_total
    return math.nan


def kv_blocks(moment: Moment) -> tuple[float | None, float | None]:
    """Blocks used and in all, from the sample or the engine's boot facts."""
    sample, facts = moment.stats.engine, moment.engine
    total = sample.kv_blocks_total if sample is not None else None
    if total is None and facts is not None:
        total = facts.kv_blocks_total
    used = sample.kv_blocks_used if sample is not None else None
    if used is None and total is not None and not math.isnan(kv_share(moment.stats)):
        used = round(kv_share(moment.stats) * total)
    return used, total


def _prefix_cache(stats: LiveStats) -> list[Run]:
    sample = stats.engine
    if sample is None or not sample.prefix_cache_queries_total or sample.prefix_cache_hits_total is None:
        return [("in use, of all blocks", "muted")]
    hits = sample.prefix_cache_hits_total / sample.prefix_cache_queries_total
    return [("in use, of all blocks   ", "muted"), ("prefix cache hits ", "muted"), (formats.percent(hits), "strong")]
