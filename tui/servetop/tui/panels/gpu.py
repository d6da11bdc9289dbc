"""GPUs, one line each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.events import GpuSample
from servetop.tui import formats
from servetop.tui.charts import gauge
from servetop.tui.lines import Row, Run, joined
from servetop.tui.panels.panel import Panel
from servetop.tui.printable import printable
from servetop.tui.run_so_far import Moment


class GpuPanel(Panel):
    """Utilisation, memory, power and temperature of each device."""

    def title(self, moment: Moment) -> Sequence[Row]:
        """Mean utilisation and, for one device, its memory."""
        gpus = moment.stats.gpus
        if not gpus:
            return [[("GPU", "title")]]
        busy = [gpu.utilisation for gpu in gpus if gpu.utilisation is not None]
        mean = sum(busy) / len(busy) if busy else math.nan
        parts: list[Row] = [[("GPU ", "title"), (formats.percent(mean), "strong")]]
        if len(gpus) == 1:
            parts.append([(formats.memory(gpus[0].memory_used, None), "strong")])
        return [*parts, [(gpu_name(gpus), "muted")]]

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """See `draw_gpus`."""
        return draw_gpus(moment.stats.gpus, width, height)


def draw_gpus(gpus: Sequence[GpuSample], width: int, height: int) -> list[Row]:
    """A line a device; devices that do not fit are counted in the last line."""
    if not gpus:
        return [[("no GPU seen", "muted")]]
    shown = gpus if len(gpus) <= height else gpus[: max(height - 1, 0)]
    rows: list[Row] = [_device(gpu, width) for gpu in shown]
    if len(shown) < len(gpus):
        rows.append([(f"… and {len(gpus) - len(shown)} more", "muted")])
    return rows


def gpu_name(gpus: Sequence[GpuSample]) -> str:
    """`H200`, or `8 × H200`; empty without a GPU."""
    if not gpus:
        return ""
    name = printable(gpus[0].name).removeprefix("NVIDIA ")
    return name if len(gpus) == 1 else f"{len(gpus)} × {name}"


def _device(gpu: GpuSample, width: int) -> list[Run]:
    busy = math.nan if gpu.utilisation is None else gpu.utilisation
    figures: list[Row] = [
        [(f"{gpu.index} ", "muted"), (f"{formats.percent(busy):>6}", "strong")],
        [(formats.memory(gpu.memory_used, gpu.memory_total), "")],
        [(formats.UNKNOWN if gpu.power is None else f"{gpu.power:3.0f} W", "")],
        [(formats.UNKNOWN if gpu.temperature is None else f"{gpu.temperature:.0f} °C", "")],
        [("" if gpu.sm_clock is None else f"{gpu.sm_clock / 1e6:.0f} MHz", "muted")],
    ]
    row = joined(figures, width=width, gap="  ")
    room = width - sum(len(text) for text, _ in row) - 2
    if room < 6:
        return row
    bar = gauge(busy, width=min(room, 20), style="green")
    return [*figures[0], ("  ", ""), *bar, *row[len(figures[0]) :]]
