"""The KV panel: KV blocks in use, and their map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from servetop.analysis.engine_gauges import KV_HIGH, kv_usage
from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.block_map import block_map, blocks_per_cell
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart, gauge
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, row_width, spread
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import staleness, why_missing
from servetop.tui.state.frame import Frame

_ROOM_FOR_A_MAP = 44
"""Cells of width; in less the usage over time needs the whole panel."""


class KvPanel(TimeChart):
    """KV blocks used of the total, and the share over time."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "kv_usage", "kv_blocks_used"):
            return [[("KV blocks", "title")]]
        used, total = kv_blocks(frame)
        share = kv_usage(frame.stats.engine)
        full: Run = ("▲ nearly full", "warn") if share > KV_HIGH else ("", "")
        parts: list[TextRow] = [[("KV blocks ", "title"), (formats.percent(share), "strong")]]
        if used is not None and total is not None:
            parts.append([(formats.exact(used), "strong"), (f"/{formats.exact(total)}", "")])
        return [*parts, [full]] if full[0] else parts

    def subtitle(self, frame: Frame) -> TextRow:
        return [(staleness(frame), "warn")]

    def watch_frame(self, frame: Frame | None) -> None:
        super().watch_frame(frame)
        self.set_class(frame is not None and kv_usage(frame.stats.engine) > KV_HIGH, "-full")

    def left_of_chart(self, frame: Frame) -> int:
        width, height = self.size
        return super().left_of_chart(frame) + _map_width(kv_blocks(frame), width, height)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "kv_usage", "kv_blocks_used")
        if missing:
            return placard(missing, width=width, height=height)
        axes = replace(self.axes(frame), limit=1.0, label=lambda share: f"{share:.0%}")
        return draw_kv(frame.stats, axes, width, height, blocks=kv_blocks(frame))


def draw_kv(
    stats: LiveStats, axes: Axes, width: int, height: int, *, blocks: tuple[float | None, float | None] = (None, None)
) -> list[TextRow]:
    """A bar and an area over time; if there is room, a map of the `blocks` (used, total) instead of the bar."""
    share, series = kv_usage(stats.engine), stats.series
    style = "vermilion" if share > KV_HIGH else "sky"
    bar = gauge(share, width=width, style=style)
    if height < KvPanel.axes_from:
        bars = Bars(times=series.times, values=series.kv_usage, style=style)
        return [bar, *block_bars(bars, axes, width=width, height=height - 1)] if height > 1 else [bar]
    area = ChartLine(times=series.times, values=series.kv_usage, style=style, area=True)
    (used, total), beside = blocks, _map_width(blocks, width, height)
    if not beside or used is None or total is None:
        return [bar, fitted(_prefix_cache(stats), width), *chart([area], axes, width=width, height=height - 2)]
    cells = block_map(used, total, width=beside - 2, height=height - 1, style=style)
    plot = chart([area], axes, width=width - beside, height=height - 1)
    each = blocks_per_cell(total, cells=(beside - 2) * (height - 1))
    scale: TextRow = [("⣿", style), (f" = {formats.exact(each)} block{'s' * (each > 1)}   ", "muted")]
    rows = [spread(left, right, width=width) for left, right in zip_longest(cells, plot, fillvalue=())]
    legend = [*scale, *_prefix_cache(stats)[-3:]]
    return [fitted(legend if row_width(legend) <= width else legend[:-1], width), *rows]


def _map_width(blocks: tuple[float | None, float | None], width: int, height: int) -> int:
    """Cells of the map and the gap after it; 0 if there is none."""
    shown = width >= _ROOM_FOR_A_MAP and height >= KvPanel.axes_from and blocks[0] is not None and blocks[1]
    return width * 2 // 5 if shown else 0


def kv_blocks(frame: Frame) -> tuple[float | None, float | None]:
    """Blocks used and in total, from the sample or the engine's facts."""
    sample, facts = frame.stats.engine, frame.engine
    total = sample.kv_blocks_total if sample is not None else None
    if total is None and facts is not None:
        total = facts.kv_blocks_total
    used = sample.kv_blocks_used if sample is not None else None
    if used is None and total is not None and not math.isnan(kv_usage(frame.stats.engine)):
        used = round(kv_usage(frame.stats.engine) * total)
    return used, total


def _prefix_cache(stats: LiveStats) -> list[Run]:
    """Hit rates of the window and of the run; not the engine's own counters, which may have started long before."""
    window, run = stats.rates.prefix_cache_hit_rate, stats.totals.prefix_cache_hit_rate
    if math.isnan(run):
        return [("blocks in use", "muted")]
    return [
        ("blocks in use   ", "muted"),
        ("prefix cache hits ", "muted"),
        (formats.percent(window), "strong"),
        (f", run {formats.percent(run)}", "muted"),
    ]
