"""The table of recordings: filter, columns, sparklines, and the details of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from servetop.core.interfaces.recording_store import RecordingInfo, RecordingPreview, RecordingState
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, shortened

_BARS = "▁▂▃▄▅▆▇█"
_STATES = {
    RecordingState.LIVE: ("● live", "bad"),
    RecordingState.FINISHED: ("■ ended", "muted"),
    RecordingState.BROKEN_OFF: ("‖ broke off", "warn"),
    RecordingState.UNREADABLE: ("✖ unreadable", "warn"),
}


def matches(path: Path, preview: RecordingPreview | None, query: str) -> bool:
    """Whether every word of the query is part of the name, engine, model, label or state, ignoring case."""
    known = (
        ""
        if preview is None
        else " ".join((preview.info.engine, preview.info.model, preview.info.label, preview.info.state))
    )
    text = f"{path.stem} {known}".casefold()
    return all(word in text for word in query.casefold().split())


def sparkline(values: Sequence[float], cells: int) -> str:
    """One bar per bin, scaled to the peak, `·` for 0; if there are fewer cells than bins, each cell shows its peak."""
    if not values or cells < 1:
        return ""
    width = -(-len(values) // cells)
    peaks = [max(values[start : start + width]) for start in range(0, len(values), width)]
    top = max(peaks)
    return "".join("·" if not value > 0 else _BARS[min(int(value / top * 8), 7)] for value in peaks)


def scrolled(top: int, cursor: int, visible: int) -> int:
    """Return the first visible row, moved as little as necessary to keep the cursor among the `visible` rows."""
    return max(min(top, cursor), cursor - max(visible, 1) + 1, 0)


def state_run(info: RecordingInfo) -> Run:
    """Return the state with a symbol; a failure with its exit code."""
    return (f"✖ exit {info.exit_code}", "bad") if info.exit_code else _STATES[info.state]


def when_started(started: float) -> str:
    """Unix time as local date and time, 16 characters."""
    try:
        return datetime.fromtimestamp(started).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return formats.UNKNOWN


SPARK_CELLS = 24
"""Maximum width of a row's sparkline: as many bins are read of every recording."""
_RESULTS = (("TTFT p99", 8), ("goodput", 7), ("preempt.", 8))
_COLUMNS = (
    ("state", 12),
    ("started", 16),
    ("engine", 8),
    ("model", 18),
    ("time", 7),
    ("requests", 8),
    ("peak tok/s", 10),
    *_RESULTS,
)
"""Columns from 160 cells of width on."""
_MEDIUM = (("state", 12), ("time", 7), ("requests", 8), ("peak tok/s", 10), *_RESULTS)
"""Columns below 160 cells of width, or beside the verdicts."""
_NARROW = (("", 1), ("time", 7), ("requests", 8), *_RESULTS[:2])
"""Columns below 110 cells: the state is a symbol alone, spelt out below the list."""
_LEFT = ("", "state", "started", "engine", "model")
"""Columns of texts; all others are numbers."""
_NAME = 26
_SHORT_SPARK = 8
"""Cells of the sparkline beside the verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The columns with their widths, and the widths of the name, the sparkline and the verdict; 0 omits one."""

    columns: Sequence[tuple[str, int]]
    name: int
    spark: int = 0
    verdict: int = 0


def draw_recordings(
    paths: Sequence[Path], known: Mapping[Path, RecordingPreview], *, cursor: int, top: int, size: tuple[int, int]
) -> list[TextRow]:
    """Column titles and the rows from `top` on, the one under the cursor marked; `size` is (width, height)."""
    width, height = size
    if not paths:
        return placard("no recording matches", width=width, height=height)
    layout = _layout(width, verdicts=any(preview.results.verdict for preview in known.values()))
    rows: list[TextRow] = [fitted(_titles(layout), width)]
    for number, path in enumerate(paths[top : top + height - 1], start=top):
        preview = known.get(path)
        cells = _cells(preview, layout)
        name = shortened(sanitize_line(path.stem), layout.name)
        current = number == cursor
        style = "key" if current else ""
        named: TextRow = [
            ("▸ " if current else "  ", "key"),
            (name + " " * (layout.name - cell_len(name)), style),
            *cells,
        ]
        rows.append(fitted(named, width))
    return rows


def _layout(width: int, *, verdicts: bool) -> _Layout:
    columns = _COLUMNS if width >= 160 and not verdicts else _MEDIUM if width >= 110 else _NARROW
    taken = sum(cells + 2 for _, cells in columns) + 2
    room = width - taken - _NAME - 2
    if verdicts and room >= 2 * _SHORT_SPARK:
        spark = _SHORT_SPARK if room >= 6 * _SHORT_SPARK else 0
        return _Layout(columns=columns, name=_NAME, spark=spark, verdict=room - (spark + 2 if spark else 0))
    spark = min(SPARK_CELLS, max(room, 0))
    return _Layout(columns=columns, name=max(width - taken - (spark + 2 if spark else 0), 8), spark=spark)


def _titles(layout: _Layout) -> TextRow:
    titles = "".join(f"  {_aligned(name, name, cells)}" for name, cells in layout.columns)
    rest = [("throughput" if layout.spark >= len("throughput") else "tok/s", layout.spark), ("verdict", layout.verdict)]
    ends = "".join(f"  {shortened(name, cells):<{cells}}" for name, cells in rest if cells)
    return [(f"  {'recording':<{layout.name}}{titles}{ends}", "faint")]


def _aligned(column: str, text: str, cells: int) -> str:
    text = shortened(text, cells)
    blank = " " * (cells - cell_len(text))
    return text + blank if column in _LEFT else blank + text


def _cells(preview: RecordingPreview | None, layout: _Layout) -> list[Run]:
    if preview is None:
        return [("  …", "faint")]
    texts = _texts(preview)
    runs = [(f"  {_aligned(name, texts[name][0], cells)}", texts[name][1]) for name, cells in layout.columns]
    if layout.spark:
        runs.append((f"  {sparkline(preview.output_rates, layout.spark):<{layout.spark}}", "sky"))
    return [*runs, (f"  {sanitize_line(preview.results.verdict)}" if layout.verdict else "", "")]


def _texts(preview: RecordingPreview) -> dict[str, Run]:
    info, results = preview.info, preview.results
    known = info.state is not RecordingState.UNREADABLE
    counted, state = known and not info.watch, state_run(info)
    return {
        "": (state[0][:1], state[1]),
        "state": state,
        "started": (when_started(info.started), "muted"),
        "engine": (sanitize_line(info.engine) or formats.UNKNOWN, ""),
        "model": (sanitize_line(info.model).rsplit("/", 1)[-1] or formats.UNKNOWN, ""),
        "time": (formats.clock(info.duration) if known else formats.UNKNOWN, "strong"),
        "requests": ("watch" if info.watch else formats.count(info.requests if known else None), ""),
        "peak tok/s": (formats.count(info.peak_output_tokens_per_s if counted else None), ""),
        "TTFT p99": (formats.seconds(results.ttft_p99), "strong"),
        "goodput": (formats.percent(results.goodput_share), ""),
        "preempt.": (formats.count(results.preemptions), "warn" if results.preemptions else ""),
    }


def draw_details(path: Path | None, preview: RecordingPreview | None, width: int) -> list[TextRow]:
    """Return two rows on a recording: its name, then its state, start, engine, model, label and problem."""
    if path is None:
        return [[], []]
    verdict = "" if preview is None else sanitize_line(preview.results.verdict)
    name: list[Run] = [(sanitize_line(path.name), "strong"), (f" · {verdict}" if verdict else "", "")]
    rows: list[TextRow] = [fitted(name, width)]
    if preview is None:
        return [*rows, [("not read yet", "faint")]]
    info = preview.info
    parts: list[Run] = [
        state_run(info),
        (f" · {when_started(info.started)} · {sanitize_line(info.engine)} · {sanitize_line(info.model)}", "muted"),
    ]
    parts += [(f" · {sanitize_line(info.label)}", "")] if info.label else []
    if info.state is RecordingState.UNREADABLE:
        parts = [state_run(info)]
    parts += [(f" · {sanitize_line(info.problem)}", "warn")] if info.problem else []
    return [*rows, fitted(parts, width)]
