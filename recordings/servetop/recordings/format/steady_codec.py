"""Encodes the steady windows of the stages as the JSON text of column `run.steady`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.config import from_data
from servetop.core.errors import UsageError
from servetop.recordings.format.column_bounds import MAX_RUN_SECONDS


def window_data(window: SteadyWindow) -> dict[str, Any]:
    """Return start, end (run time), length, method and reason; the first three are null without a steady state."""
    return {
        "start": window.start,
        "end": window.end,
        "seconds": window.seconds,
        "method": window.method,
        "reason": window.reason or None,
    }


def encode_windows(windows: Mapping[int, SteadyWindow]) -> str:
    """Encode the windows as a JSON list in order of stages."""
    return orjson.dumps([{"stage": stage, **window_data(window)} for stage, window in windows.items()]).decode()


def decode_windows(text: str | None) -> dict[int, SteadyWindow]:
    """Decode the windows by stage; empty if missing or damaged, as they can be computed again from the ticks."""
    try:
        rows = orjson.loads(text or "[]")
        return {int(row["stage"]): _window(row) for row in rows}
    except (ValueError, TypeError, KeyError, OverflowError, UsageError):
        return {}


def _window(row: Mapping[str, Any]) -> SteadyWindow:
    known = {name: value for name, value in row.items() if value is not None}
    window = from_data(SteadyWindow, known, strict=False, where="recorded steady window")
    if window.start is not None and not (window.end is not None and 0 <= window.start < window.end <= MAX_RUN_SECONDS):
        raise ValueError("a steady window must end after its start")
    return window
