"""Choosing among many recordings: which match, which are in sight, and their throughput in a few cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from servetop.core.interfaces.recording_store import RecordingInfo, RecordingPreview, RecordingState
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import Run

_BARS = "▁▂▃▄▅▆▇█"
_STATES = {
    RecordingState.LIVE: ("● live", "bad"),
    RecordingState.FINISHED: ("■ ended", "muted"),
    RecordingState.BROKEN_OFF: ("‖ broke off", "warn"),
    RecordingState.UNREADABLE: ("✖ unreadable", "warn"),
}


def matches(path: Path, glance: RecordingPreview | None, words: str) -> bool:
    """Every word is part of the name or of what is known of it (engine, model, label, state), in any case."""
    known = (
        ""
        if glance is None
        else " ".join((glance.info.engine, glance.info.model, glance.info.label, glance.info.state))
    )
    text = f"{path.stem} {known}".casefold()
    return all(word in text for word in words.casefold().split())


def sparkline(values: Sequence[float], cells: int) -> str:
    """One bar a bin, the tallest the peak, `·` where nothing came; narrower than the bins, each cell takes its peak."""
    if not values or cells < 1:
        return ""
    width = -(-len(values) // cells)
    peaks = [max(values[start : start + width]) for start in range(0, len(values), width)]
    top = max(peaks)
    return "".join("·" if not value > 0 else _BARS[min(int(value / top * 8), 7)] for value in peaks)


def scrolled(top: int, cursor: int, visible: int) -> int:
    """The first row shown, moved no further than needed to have the cursor among the `visible` rows."""
    return max(min(top, cursor), cursor - max(visible, 1) + 1, 0)


def state_run(info: RecordingInfo) -> Run:
    """What became of it, with a symbol; a failure by its exit code."""
    return (f"✖ exit {info.exit_code}", "bad") if info.exit_code else _STATES[info.state]


def when_started(started: float) -> str:
    """Unix time as local date and time, 16 characters."""
    try:
        return datetime.fromtimestamp(started).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return formats.UNKNOWN
