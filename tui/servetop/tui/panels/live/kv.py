"""The KV panel: KV blocks in use, and their map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from servetop.analysis.engine_gauges import KV_HIGH, kv_usage
from servetop.analysis.live_stats import LiveStats
from servetop.core.config import WorkloadConfig
from servetop.core.config_values.cell_settings import settings_of
from servetop.core.config_values.cell_workload import cell_workload
from servetop.core.text import formats
from servetop.tui.drawing.block_map import block_map, blocks_per_cell
from servetop.tui.drawing.braille import ChartLine, parted
from servetop.tui.drawing.charts import GUTTER, Axes, Bars, chart, gauge
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard
from servetop.tui.panels.baseline_parts import bars_or_lines, delta
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import why_missing, why_outdated
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.frame import Frame

_ROOM_FOR_A_MAP = 16
"""Rows; in fewer a bar shows the blocks in use."""
_MAP_ROWS = 3
_WIDE = 36
"""Cells from which the title has room for the panel's name beside a reason."""
_LOW, _HIGH = "sky", "vermilion"
"""Styles of usage up to and above `KV_HIGH`, each at its time."""


class KvPanel(TimeChart):
    """KV blocks used of the total, and the share over time."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "kv_usage", "kv_blocks_used"):
            return [[("KV blocks", "title")]]
        if lost := why_outdated(frame):
            return [[("KV blocks ", "title"), (lost, "warn")] if self.size.width >= _WIDE else [(lost, "warn")]]
        used, total = kv_blocks(frame)
        share = kv_usage(frame.stats.engine)
        full: Run = ("▲ nearly full", "warn") if share > KV_HIGH else ("", "")
        baseline = frame.shown_baseline
        change = [delta(share, baseline.gauges_now["kv_usage"])] if baseline else []
        parts: list[TextRow] = [[("KV blocks ", "title"), (formats.percent(share), "strong")], *change]
        if used is not None and total is not None:
            parts.append([(formats.exact(used), "strong"), (f"/{formats.exact(total)}", "")])
        if frame.peaks:
            return [*parts, [("last sample", "muted")]]
        return [*parts, [full]] if full[0] else parts

    def watch_frame(self, frame: Frame | None) -> None:
        super().watch_frame(frame)
        full = frame is not None and kv_usage(frame.stats.engine) > KV_HIGH and not why_outdated(frame)
        self.set_class(full, "-full")

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "kv_usage", "kv_blocks_used")
        if missing:
            return placard(missing, width=width, height=height)
        axes = replace(self.axes(frame), limit=1.0, label=lambda share: f"{share:.0%}")
        stats = replace(frame.stats, engine=None) if why_outdated(frame) else frame.stats
        extras = KvExtras(
            blocks=kv_blocks(frame),
            wanted_hits=_workload(frame).cache_hit_rate,
            baseline=frame.shown_baseline,
        )
        return draw_kv(stats, axes, width, height, extras=extras)


def _workload(frame: Frame) -> WorkloadConfig:
    """The workload of the stage in force."""
    settings = None if frame.stage is None else settings_of(frame.stage.settings)
    return cell_workload(frame.header.config.workload, settings or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class KvExtras:
    """What the panel shows besides the usage, where it is known."""

    blocks: tuple[float | None, float | None] = (None, None)
    """Blocks in use, and in total."""
    wanted_hits: float | None = None
    """Hit rate of the prefix cache for which the prompts were built."""
    baseline: Baseline | None = None


_NO_EXTRAS = KvExtras()


def draw_kv(stats: LiveStats, axes: Axes, width: int, height: int, *, extras: KvExtras = _NO_EXTRAS) -> list[TextRow]:
    """Return the blocks in use as a bar or, if there is room, as a map; then the past."""
    baseline = extras.baseline
    usage, times, gutter = stats.series.kv_usage, stats.series.times, GUTTER if height >= KvPanel.axes_from else 0
    used = (
        []
        if math.isnan(kv_usage(stats.engine))
        else _in_use(stats, width, height, blocks=extras.blocks, hits=_prefix_cache(stats, extras.wanted_hits))
    )
    high = usage > KV_HIGH
    before = None if baseline is None else baseline.gauges["kv_usage"]
    if not gutter:
        bars = Bars(times=times, values=usage, style=_LOW, alert=high, alert_style=_HIGH)
        rows = height - len(used)
        if rows < 1:
            return used
        return [*used, *bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=rows)]
    area = ChartLine(times=times, values=usage, style=_LOW, area=True)
    lines = [] if baseline is None or before is None else baseline.lines(before, over_area=True)
    traces = [*parted(area, high, style=_HIGH), *lines]
    return [*used, *chart(traces, axes, width=width, height=height - len(used))]


def _in_use(
    stats: LiveStats, width: int, height: int, *, blocks: tuple[float | None, float | None], hits: list[Run]
) -> list[TextRow]:
    """Return the blocks in use now and the hits of the prefix cache, in rows that end where the chart ends."""
    gutter = GUTTER if height >= KvPanel.axes_from else 0
    share, canvas, (used, total) = kv_usage(stats.engine), width - gutter, blocks
    style = _HIGH if share > KV_HIGH else _LOW
    label = f"{'used':>{gutter - 1}} " if gutter else ""
    cache: list[TextRow] = [[(" " * gutter, ""), *fitted(hits, canvas)]] if gutter else []
    if height < _ROOM_FOR_A_MAP or used is None or not total:
        bar: TextRow = [(label, "muted"), *gauge(share, width=canvas, style=style)]
        return [bar, *(cache if hits else [])]
    each = blocks_per_cell(total, cells=canvas * _MAP_ROWS)
    scale: TextRow = [("⣿", style), (f" = {formats.exact(each)} block{'s' * (each > 1)}   ", "muted")]
    cells = block_map(used, total, width=canvas, height=_MAP_ROWS, style=style)
    left = [label, *[" " * gutter] * (len(cells) - 1)]
    drawn: list[TextRow] = [[(text, "muted"), *row] for text, row in zip(left, cells, strict=True)]
    return [*drawn, [(" " * gutter, ""), *fitted([*scale, *hits], canvas)]]


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


def _prefix_cache(stats: LiveStats, wanted: float | None) -> list[Run]:
    """Hit rates of the window and of the run, and the wanted one.

    The engine's own counters are not used: they may have started long before.
    """
    window, run = stats.rates.prefix_cache_hit_rate, stats.totals.prefix_cache_hit_rate
    if math.isnan(run):
        return []
    return [
        ("prefix cache hits ", "muted"),
        (formats.percent(window), "strong"),
        (f", run {formats.percent(run)}{'' if wanted is None else f', of {formats.percent(wanted)} wanted'}", "muted"),
    ]
