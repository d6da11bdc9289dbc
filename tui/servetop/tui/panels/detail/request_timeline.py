"""One request on its own time axis: phases, gaps between chunks, and the engine's state below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.text import formats
from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import GUTTER, Axes, Bars, block_bars, chart, legend
from servetop.tui.drawing.scale import peak_of, round_limit
from servetop.tui.drawing.text_runs import TextRow, fitted, joined, placard
from servetop.tui.state.request_phases import Preemptions, Span, ended_at, spans, unknown_preemptions
from servetop.tui.state.request_rows import bar, row_of

_LONGEST = "▼"
_ROOM_FOR_SERVER_TIMES = 8
"""Rows; in fewer the gaps take the place of the server's own times."""


def draw_request(
    record: RequestRecord, stats: LiveStats, width: int, height: int, *, preemptions: Preemptions = unknown_preemptions
) -> list[TextRow]:
    """Values, phases, gaps as bars with the longest marked, and the engine's state if there is room."""
    end = ended_at(record)
    axis = (record.due, max(end, record.due + 1e-3))
    canvas = width - GUTTER
    left: TextRow = [(" " * GUTTER, "")]
    phases = spans(record, end, preemptions=preemptions)
    failed = record.status is not RequestStatus.OK
    drawn = bar(phases, axis, canvas, failed=failed)
    top: list[TextRow] = [_summary(record, width), [*left, *drawn], _phases(phases, width)]
    top += _server_times(record, width) if height >= _ROOM_FOR_SERVER_TIMES else []
    height -= len(top) - 3
    below = (height - 5) // 3 if height >= 17 else 0
    bars = _gaps(record, axis, width, max(height - 4 - 2 * below, 2))
    ends = f"{'due':<{canvas // 2 - 3}}{formats.seconds((axis[1] - axis[0]) / 2):<{canvas - canvas // 2 - 5}}"
    last = f"{formats.seconds(axis[1] - axis[0])}"
    under: TextRow = [*left, (ends[: canvas - len(last)].ljust(canvas - len(last)) + last, "faint")]
    return [*top, *bars, under, *(_engine(stats, axis, width, below) if below else [])]


def _summary(record: RequestRecord, width: int) -> TextRow:
    row = row_of(record, ended_at(record))
    values: tuple[tuple[str, str], ...] = (
        ("TTFT", formats.seconds(row.ttft)),
        ("ITL", formats.seconds(row.itl)),
        ("max", formats.seconds(row.itl_max)),
        ("E2EL", formats.seconds(row.e2el)),
        ("in", formats.exact(row.prompt_tokens)),
        ("out", formats.exact(row.output_tokens)),
    )
    if record.replica is not None:
        values = (*values, ("replica", formats.exact(record.replica)))
    return joined(([(f"{name} ", "muted"), (text, "strong")] for name, text in values), width=width, gap="  ")


def _phases(phases: Sequence[Span], width: int) -> TextRow:
    """Return each phase with its total."""
    parts = [
        [
            (phase.glyph * 2, phase.style),
            (f" {phase.name} ", "muted"),
            (formats.seconds(sum(each.seconds for each in phases if each.phase is phase)), "strong"),
        ]
        for phase in dict.fromkeys(each.phase for each in phases)
    ]
    return [(" " * GUTTER, ""), *joined(parts, width=width - GUTTER, gap="  ")]


def _server_times(record: RequestRecord, width: int) -> list[TextRow]:
    """Return the times that the server reported for the request, if it did."""
    times = (record.server_queue, record.server_prefill, record.server_decode)
    if times == (None, None, None):
        return []
    parts = [
        [(f"{name} ", "muted"), (formats.seconds(value), "strong")]
        for name, value in zip(("server: queue", "prefill", "decode"), times, strict=True)
    ]
    return [[(" " * GUTTER, ""), *joined(parts, width=width - GUTTER, gap="  ")]]


def _gaps(record: RequestRecord, axis: tuple[float, float], width: int, height: int) -> list[TextRow]:
    """Each cell is as high as the longest gap that ended in it."""
    times, canvas = record.chunk_times, width - GUTTER
    if times.size < 2:
        return placard("no gap: fewer than two chunks came", width=width, height=height)
    gaps = np.diff(times)
    cells = np.clip(((times[1:] - axis[0]) / (axis[1] - axis[0]) * canvas).astype(int), 0, canvas - 1)
    highest = np.zeros(canvas)
    np.maximum.at(highest, cells, gaps)
    longest = int(gaps.argmax())
    column = int(cells[longest])
    limit = round_limit(float(gaps.max()))
    edges = np.linspace(*axis, canvas + 1)[1:]
    axes = Axes(window=axis, limit=limit)
    drawn = block_bars(Bars(times=edges, values=highest, style="sky"), axes, width=canvas, height=max(height - 1, 1))
    text = f"{formats.seconds(float(gaps[longest]))} after token {int(record.chunk_tokens[: longest + 1].sum())}"
    before = f"{text} " if column > canvas // 2 else ""
    after = "" if before else f" {text}"
    mark: TextRow = [
        (" " * max(GUTTER + column - len(before), 0), ""),
        (before, "strong"),
        (_LONGEST, "warn"),
        (after, "strong"),
    ]
    labels = {0: f"{axis_seconds(limit):>{GUTTER - 1}}┤", len(drawn) - 1: f"{'0':>{GUTTER - 1}}┤"}
    return [
        fitted(mark, width),
        *([(labels.get(y, " " * (GUTTER - 1) + "│"), "faint"), *row] for y, row in enumerate(drawn)),
    ]


def _engine(stats: LiveStats, axis: tuple[float, float], width: int, height: int) -> list[TextRow]:
    """KV usage, then running and waiting requests, each under its name, or a note if unknown."""
    series = stats.series
    both = series.running + np.nan_to_num(series.waiting)
    limit = round_limit(peak_of(both))
    kv = ChartLine(times=series.times, values=series.kv_usage, style="vermilion", area=True)
    waits = ChartLine(times=series.times, values=both, style="orange", dash="dashed", area=True)
    runs = ChartLine(times=series.times, values=series.running, style="sky", area=True)
    share = Axes(window=axis, limit=1.0, label=lambda value: f"{value:.0%}")
    rows: list[TextRow] = []
    for traces, names, axes in (
        ([kv], ("KV blocks in use",), share),
        ([waits, runs], ("wait", "run"), replace(share, limit=limit, label=formats.count)),
    ):
        if all(np.isnan(trace.values).all() for trace in traces):
            rows += placard(f"{', '.join(names)}: not known for this time", width=width, height=height)
            continue
        parts = [(trace, name, "") for trace, name in zip(traces, names, strict=True)]
        rows += [
            [(" " * GUTTER, ""), *legend(parts, width=width - GUTTER)],
            *chart(traces, axes, width=width, height=height)[: height - 1],
        ]
    return rows
