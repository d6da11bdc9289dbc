"""The steady window of each stage, and its summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.summary.summary_types import Measurements, SteadySummary
from servetop.analysis.trust.steady_state import MIN_TICKS, SteadyWindow, steady_window
from servetop.core.tick import TICK_SECONDS

_ROUNDING = 1e-6
_TOO_SHORT = f"the load is too short: at least {MIN_TICKS * TICK_SECONDS:g} s are needed"


def steady_windows(run: RunColumns) -> dict[int, SteadyWindow]:
    """Return the steady window of each stage except warm-ups, from the ticks entirely within the stage."""
    windows: dict[int, SteadyWindow] = {}
    for stage in run.stages:
        if not stage.change.warmup:
            first = int(np.searchsorted(run.load_ticks.start, stage.period.start - _ROUNDING))
            stop = int(np.searchsorted(run.tick_ends, stage.period.until + _ROUNDING, side="right"))
            ticks = run.load_ticks.part(first, max(first, stop))
            window = steady_window(ticks, cooldown=run.header.config.cooldown)
            if not ticks.due.any():  # requests may have been due in a tick that the stage shares with its neighbours
                shared = run.load_ticks.part(max(0, first - 1), max(first, stop) + 1)
                window = replace(window, reason=_TOO_SHORT if shared.due.any() else window.reason)
            windows[stage.change.index] = window
    return windows


def steady_summary(window: SteadyWindow, measured: Measurements | None) -> SteadySummary:
    """Return the summary of a window and its measurements; without a steady state, only the reason."""
    return SteadySummary(
        start=window.start,
        end=window.end,
        seconds=window.seconds,
        method=window.method,
        reason=window.reason or None,
        measured=measured,
    )


def with_rates_within(measured: Measurements, run: RunColumns, period: Period) -> Measurements:
    """Return the measurements with the rates of the period.

    The time from first sent to last done would also include the end of its requests, while others take their place.
    """
    within = period.contains(run.load_ticks.start)
    seconds = period.until - period.start
    ended, output, prompt = (float(each[within].sum()) for each in (run.ok, run.output_tokens, run.prompt_tokens))
    requests = measured.requests
    good = requests.request_goodput
    share = None if good is None or not requests.completed else good * requests.duration / requests.completed
    rates = replace(
        requests,
        duration=seconds,
        request_throughput=ended / seconds,
        request_goodput=None if share is None else share * ended / seconds,
        output_throughput=output / seconds,
        total_token_throughput=(prompt + output) / seconds,
    )
    return replace(measured, requests=rates)


def whole_steady(stages: Sequence[SteadySummary]) -> SteadySummary:
    """Return a run's steady window: that of its only stage; none for several stages."""
    if len(stages) == 1:
        return stages[0]
    count = sum(stage.start is not None for stage in stages)
    reason = f"each stage is a separate load: {count} of {len(stages)} had a steady state, see stages"
    return steady_summary(SteadyWindow(reason=reason if stages else "the run had no load"), None)
