"""The table of recordings: filter, columns, sparklines, and the details of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from servetop.core.interfaces.recording_store import RecordingInfo, RecordingPreview, RecordingState
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
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
    """The first visible row, moved as little as necessary to keep the cursor among the `visible` rows."""
    return max(min(top, cursor), cursor - max(visible, 1) + 1, 0)


def state_run(info: RecordingInfo) -> Run:
    """The state with a symbol; a failure with its exit code."""
    return (f"✖ exit {info.exit_code}", "bad") if info.exit_code else _STATES[info.state]


def when_started(started: float) -> str:
    """Unix time as local date and time, 16 characters."""
    try:
        return datetime.fromtimestamp(started).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return formats.UNKNOWN


SPARK_CELLS = 24
"""Maximum width of a row's sparkline: as many bins are read of every recording."""
_COLUMNS = (
    ("state", 12),
    ("started", 16),
    ("engine", 8),
    ("model", 18),
    ("time", 7),
    ("requests", 8),
    ("peak tok/s", 10),
)
_MEDIUM = (("state", 12), ("time", 7), ("requests", 8), ("peak tok/s", 10))
"""Columns below 120 cells of width."""
_NARROW = (("", 1), *_MEDIUM[1:])
"""Columns below 100 cells: the state is a symbol alone, spelt out below the list."""
_AS_NUMBERS = ("time", "requests", "peak tok/s")


def draw_recordings(
    paths: Sequence[Path], known: Mapping[Path, RecordingPreview], *, cursor: int, top: int, size: tuple[int, int]
) -> list[TextRow]:
    """Column titles and the rows from `top` on, the one under the cursor marked; `size` is (width, height)."""
    width, height = size
    if not paths:
        return placard("no recording matches", width=width, height=height)
    columns, name_width, spark = _layout(width)
    rows: list[TextRow] = [fitted(_titles(columns, name_width), width)]
    for number, path in enumerate(paths[top : top + height - 1], start=top):
        preview = known.get(path)
        cells = _cells(preview, columns, spark)
        name = shortened(sanitize_line(path.stem), name_width)
        current = number == cursor
        style = "key" if current else ""
        named: TextRow = [
            ("▸ " if current else "  ", "key"),
            (name + " " * (name_width - cell_len(name)), style),
            *cells,
        ]
        rows.append(fitted(named, width))
    return rows


def _layout(width: int) -> tuple[list[tuple[str, int]], int, int]:
    """The columns with their widths, the width of the name, and that of the sparkline."""
    columns = list(_COLUMNS if width >= 120 else _MEDIUM if width >= 100 else _NARROW)
    taken = sum(cells + 2 for _, cells in columns) + 2
    spark = min(SPARK_CELLS, max(width - taken - 26, 0))
    return columns, max(width - taken - (spark + 2 if spark else 0), 8), spark


def _titles(columns: Sequence[tuple[str, int]], name_width: int) -> TextRow:
    titles = "".join(f"  {_aligned(name, name, cells)}" for name, cells in columns)
    return [(f"  {'recording':<{name_width}}{titles}  throughput", "faint")]


def _aligned(column: str, text: str, cells: int) -> str:
    text = shortened(text, cells)
    blank = " " * (cells - cell_len(text))
    return blank + text if column in _AS_NUMBERS else text + blank


def _cells(preview: RecordingPreview | None, columns: Sequence[tuple[str, int]], spark: int) -> list[Run]:
    if preview is None:
        return [("  …", "faint")]
    texts = _texts(preview.info)
    runs = [(f"  {_aligned(name, texts[name][0], cells)}", texts[name][1]) for name, cells in columns]
    return [*runs, (f"  {sparkline(preview.output_rates, spark)}", "sky")]


def _texts(info: RecordingInfo) -> dict[str, Run]:
    known = info.state is not RecordingState.UNREADABLE
    state = state_run(info)
    return {
        "": (state[0][:1], state[1]),
        "state": state,
        "started": (when_started(info.started), "muted"),
        "engine": (sanitize_line(info.engine) or formats.UNKNOWN, ""),
        "model": (sanitize_line(info.model).rsplit("/", 1)[-1] or formats.UNKNOWN, ""),
        "time": (formats.minutes(info.duration) if known else formats.UNKNOWN, "strong"),
        "requests": (formats.count(info.requests if known else None), ""),
        "peak tok/s": (formats.count(info.peak_output_tokens_per_s if known else None), ""),
    }


def draw_details(path: Path | None, preview: RecordingPreview | None, width: int) -> list[TextRow]:
    """Two rows on a recording: its name, then its state, start, engine, model, label and problem."""
    if path is None:
        return [[], []]
    rows: list[TextRow] = [fitted([(sanitize_line(path.name), "strong")], width)]
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
