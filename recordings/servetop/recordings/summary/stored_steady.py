"""The steady window of each stage of a recording: as stored at its end, else found from its ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servetop.analysis.verdicts.steady_state import METHOD, SteadyWindow, steady_window
from servetop.recordings.format.steady_codec import window_data
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.run_columns import Period, RunColumns
from servetop.recordings.summary.request_metrics import FIGURES

_ROUNDING = 1e-6


def steady_windows(run: RunColumns) -> dict[int, SteadyWindow]:
    """By stage, warm-ups apart, found from the ticks that lie wholly within each stage."""
    windows: dict[int, SteadyWindow] = {}
    for stage in run.stages:
        if not stage.change.warmup:
            first = int(np.searchsorted(run.load_ticks.start, stage.period.start - _ROUNDING))
            stop = int(np.searchsorted(run.tick_ends, stage.period.until + _ROUNDING, side="right"))
            ticks = run.load_ticks.part(first, max(first, stop))
            windows[stage.change.index] = steady_window(ticks, cooldown=run.header.config.cooldown)
    return windows


def known_windows(reader: RecordingReader, run: RunColumns) -> Mapping[int, SteadyWindow]:
    """Those that were stored, as long as this version would look for them in the same way."""
    stored = reader.steady
    usable = bool(stored) and all(window.method == METHOD for window in stored.values())
    return stored if usable else steady_windows(run)


def no_steady_state(window: SteadyWindow) -> dict[str, Any]:
    """Why there is none, and null for every figure."""
    return {**window_data(window), **dict.fromkeys(FIGURES)}


def in_steady_state(figures: Mapping[str, Any], run: RunColumns, *, period: Period) -> dict[str, Any]:
    """Figures of the requests that were due in a steady window, with the rates of what happened in it.

    From first sent to last done would take in the time in which they end and others take their place.
    """
    within = period.holds(run.load_ticks.start)
    seconds = period.until - period.start
    requests, output, prompt = (float(each[within].sum()) for each in (run.ok, run.output_tokens, run.prompt_tokens))
    good = figures["request_goodput"]
    share = None if good is None or not figures["completed"] else good * figures["duration"] / figures["completed"]
    return {
        **figures,
        "duration": seconds,
        "request_throughput": requests / seconds,
        "request_goodput": None if share is None else share * requests / seconds,
        "output_throughput": output / seconds,
        "total_token_throughput": (prompt + output) / seconds,
    }


def whole_steady(stages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A run's steady part from those of its stages: that of its only stage; several loads have none in common."""
    if len(stages) == 1:
        return stages[0]
    count = sum(stage["start"] is not None for stage in stages)
    words = f"each stage is a load of its own: {count} of {len(stages)} had a steady state, see stages"
    return no_steady_state(SteadyWindow(reason=words if stages else "the run had no load"))
