"""How the interval of the answer of a search becomes narrower over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, chart
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.scale import round_limit
from servetop.tui.drawing.text_runs import TextRow, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.search_progress import SearchProgress

_ABOVE = 1.25
"""The chart reaches this far beyond the largest load that was kept."""
_LEAST_STATES = 2


class IntervalPanel(Panel):
    """Both ends of the interval of each answer, over the time of the whole budget."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        unit = "" if frame.search is None else frame.search.unit
        return [[("Interval ", "title"), ("over time", "")], [(unit, "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        progress = frame.search
        if progress is None or len(progress.states) < _LEAST_STATES or not progress.loads:
            return placard("nothing is known yet", width=width, height=height)
        return draw_interval(progress, frame.stats.at, width=width, height=height)


def draw_interval(progress: SearchProgress, at: float, *, width: int, height: int) -> list[TextRow]:
    """Return the intervals until the time `at`, on an axis that has the whole budget from the first decision on."""
    begin = progress.states[0].at
    limit = round_limit(_ABOVE * max(load.load for load in progress.loads))
    window = begin, max(begin + progress.search.budget, at)
    axes = Axes(window=window, limit=limit, label=formats.axis_number)
    traces: list[ChartLine] = []
    for place, hue in zip(range(len(progress.states[-1].answers)), HUES, strict=False):
        traces += _lines(progress, place, hue, at=at, limit=limit)
    return chart(traces, axes, width=width, height=height)


def _lines(progress: SearchProgress, place: int, hue: str, *, at: float, limit: float) -> list[ChartLine]:
    """Return both ends of the interval of one answer as steps: each holds until the next decision."""
    times, lows, highs = [], [], []
    ends = [*(state.at for state in progress.states[1:]), at]
    for state, until in zip(progress.states, ends, strict=True):
        if place < len(state.answers):
            answer = state.answers[place]
            times += [state.at, max(until, state.at)]
            lows += [min(answer.low or 0.0, limit)] * 2
            highs += [limit if answer.high is None else min(answer.high, limit)] * 2
    at_times, low, high = (np.array(each, dtype=np.float64) for each in (times, lows, highs))
    return [
        ChartLine(times=at_times, values=high, style=hue, down_to=low),
        ChartLine(times=at_times, values=low, style=hue),
        ChartLine(times=at_times, values=high, style=hue),
    ]
