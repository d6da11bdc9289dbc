"""The GPU panel: one line per device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.events import GpuSample
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.charts import gauge
from servetop.tui.drawing.text_runs import Run, TextRow, joined, row_width
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame


class GpuPanel(Panel):
    """Utilisation, memory, power and temperature of each device, and the energy per token."""

    shows_cursor = True

    def title(self, frame: Frame) -> Sequence[TextRow]:
        gpus = frame.stats.gpus
        if not gpus:
            return [[("GPU", "title")]]
        busy = [gpu.utilisation for gpu in gpus if gpu.utilisation is not None]
        mean = sum(busy) / len(busy) if busy else math.nan
        return [[("GPU ", "title"), (formats.percent(mean), "strong"), (" busy", "")], [(gpu_name(gpus), "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        stats = frame.stats
        rows = draw_gpus(stats.gpus, width, height)
        spare = len(rows) < height and not math.isnan(stats.joules_per_token)
        return [*rows, energy_row(stats.joules_per_token, width)] if spare else rows


def energy_row(joules_per_token: float, width: int) -> TextRow:
    """Return the energy per output token now, over all devices."""
    parts: list[TextRow] = [[("  ", ""), (formats.joules(joules_per_token), "strong"), (" per token", "muted")]]
    return joined(parts, width=width)


def draw_gpus(gpus: Sequence[GpuSample], width: int, height: int) -> list[TextRow]:
    """Return one line per device, three if there is room; the last line counts devices that do not fit."""
    if not gpus:
        return [[("no GPU found", "muted")]]
    alone = len(gpus) == 1
    if height >= 3 * len(gpus) and width >= 36:
        return [row for gpu in gpus for row in _large(gpu, width, alone=alone)]
    shown = gpus if len(gpus) <= height else gpus[: max(height - 1, 0)]
    rows: list[TextRow] = [_device(gpu, width, alone=alone) for gpu in shown]
    if len(shown) < len(gpus):
        rows.append([(f"… and {len(gpus) - len(shown)} more", "muted")])
    return rows


def _large(gpu: GpuSample, width: int, *, alone: bool) -> list[TextRow]:
    """Return two bars and a line of values; the title has the utilisation of a device that is alone."""
    room = width - 27
    full = math.nan if not gpu.memory_total or gpu.memory_used is None else gpu.memory_used / gpu.memory_total
    memory = formats.memory(gpu.memory_used, gpu.memory_total)
    figure: TextRow = [] if alone else [(f" {formats.percent(_busy(gpu)):>7}", "strong")]
    busy: TextRow = [*gauge(_busy(gpu), width=room, style="green"), *figure]
    return [
        [(f"{'' if alone else gpu.index:<2}busy   ", "muted"), *busy],
        [("  memory ", "muted"), *gauge(full, width=room, style="sky"), (f" {memory:>7}", "strong")],
        [("  ", ""), *joined(_values(gpu), width=width - 2)],
    ]


def gpu_name(gpus: Sequence[GpuSample]) -> str:
    """`H200`, or `8 × H200`; empty without a GPU."""
    if not gpus:
        return ""
    name = sanitize_line(gpus[0].name).removeprefix("NVIDIA ")
    return name if len(gpus) == 1 else f"{len(gpus)} × {name}"


def _busy(gpu: GpuSample) -> float:
    return math.nan if gpu.utilisation is None else gpu.utilisation


def _values(gpu: GpuSample) -> list[TextRow]:
    return [
        [(formats.UNKNOWN if gpu.power is None else f"{gpu.power:3.0f} W", "")],
        [(formats.UNKNOWN if gpu.temperature is None else f"{gpu.temperature:.0f} °C", "")],
        [("" if gpu.sm_clock is None else f"{gpu.sm_clock / 1e6:.0f} MHz", "muted")],
        *([[(f"throttled: {sanitize_line(gpu.throttled)}", "warn")]] if gpu.throttled else []),
        *([[(f"engine {formats.memory(gpu.engine_memory, None)}", "muted")]] if gpu.engine_memory else []),
    ]


def _device(gpu: GpuSample, width: int, *, alone: bool) -> list[Run]:
    first: TextRow = [(f"{gpu.index} ", "muted"), (f"{formats.percent(_busy(gpu)):>6}", "strong")]
    memory: TextRow = [(formats.memory(gpu.memory_used, gpu.memory_total), "")]
    first = [("busy", "muted")] if alone else first
    row = joined([first, memory, *_values(gpu)], width=width, gap="  ")
    room = width - row_width(row) - 2
    if room < 6:
        return joined([memory, *_values(gpu)], width=width, gap="  ") if alone else row
    return [*first, ("  ", ""), *gauge(_busy(gpu), width=min(room, 20), style="green"), *row[len(first) :]]
