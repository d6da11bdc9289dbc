"""The loads of a search: a chart of the share that missed a limit, or of a mean, over the load, and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.interfaces.search_state import LoadFigure, SearchedLoad
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.core.units import MS_PER_S
from servetop.tui.drawing.load_chart import MARKS, LoadAxes, LoadPoint, LoadScale, draw_loads, legend, percent
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, shortened
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.search_progress import SearchProgress

_COLUMN = 32
"""Cells of one objective in the table."""
_FIRST = 39
"""Cells of the columns before those of the objectives."""
_IN_SECONDS = 0.9995
"""Seconds from which a mean is shown in seconds instead of milliseconds."""
_UNCOUNTED = "not counted"
"""Remark of a load before a restart of the server."""
_PURPOSES = {"measure": "", "recover": "recovery", "confirm": "confirmation"}


class ObjectivePanel(Panel):
    """A panel that shows one objective more than the others; by default the one that sets the answer."""

    objective: int | None = None
    """The place of the objective that the user chose; None follows the answer."""

    def chosen(self, progress: SearchProgress) -> int:
        """Return the place of the objective to show."""
        chosen = progress.binding if self.objective is None else self.objective
        return min(chosen, max(len(progress.objectives) - 1, 0))

    def show_next_objective(self) -> None:
        """Show the first objective, the next one, or after the last one that which sets the answer."""
        if self.frame is None or self.frame.search is None:
            return
        following = 0 if self.objective is None else self.objective + 1
        self.objective = following if following < len(self.frame.search.objectives) else None
        self.watch_frame(self.frame)


class LoadsChart(ObjectivePanel):
    """The share of samples that missed the limit, or the mean, over the load, with the interval of the answer."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        first: TextRow = [("Loads ", "title"), ("share that missed the limit", "")]
        if frame.search is None or not frame.search.objectives:
            return [first]
        objective = frame.search.objectives[self.chosen(frame.search)]
        what = " missed" if objective.mean_limit is None else ""
        return [[("Loads ", "title"), (sanitize_line(objective.label), "strong"), (what, "")]]

    def subtitle(self, frame: Frame) -> TextRow:
        return legend(width=self.size.width) if frame.search is not None and frame.search.objectives else []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.search is None or not frame.search.states:
            return placard("this recording has no figures of loads", width=width, height=height)
        return draw_chart(frame.search, self.chosen(frame.search), width=width, height=height)


def draw_chart(progress: SearchProgress, objective: int, *, width: int, height: int) -> list[TextRow]:
    """Return the chart of one objective; a sentence while no load has a sample of it."""
    state = progress.newest
    points = load_points(progress, objective)
    if state is None or not points:
        return placard("no load has a sample yet", width=width, height=height)
    shown = progress.objectives[objective]
    answer = state.answers[0] if state.answers else None
    ends = None
    if answer is not None and answer.low is not None and answer.high is not None:
        ends = answer.low, answer.high
    axes = LoadAxes(
        allowed=shown.allowed if shown.mean_limit is None else shown.mean_limit,
        scale=LoadScale.of([*(each.load for each in points), *([] if state.load is None else [state.load])]),
        answer=ends,
        now=state.load,
        label=progress.number,
        mean=shown.mean_limit is not None,
    )
    return draw_loads(points, axes, width=width, height=height)


def load_points(progress: SearchProgress, objective: int) -> list[LoadPoint]:
    """Return the loads that count and have samples of an objective, in order of time."""
    found = []
    for load in progress.loads:
        if load.number < progress.uncounted:
            continue
        figure = load.figures[objective] if objective < len(load.figures) else None
        if figure is not None and figure.share is not None:
            found.append(
                LoadPoint(
                    load=load.load,
                    figure=figure.share if figure.mean is None else figure.mean,
                    low=figure.low,
                    high=figure.high,
                    verdict=figure.verdict if figure.verdict in MARKS else "open",
                )
            )
    return found


class LoadsTable(ObjectivePanel):
    """Every load that was kept, the newest first; scrolls."""

    top = 0
    """Loads that are scrolled out above."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        count = 0 if frame.search is None else len(frame.search.loads)
        return [[("Probes ", "title"), (formats.exact(count), "strong")], [("newest first", "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.search is None or not frame.search.loads:
            return placard("no load was kept yet", width=width, height=height)
        return draw_table(frame.search, self.chosen(frame.search), size=(width, height), top=self.top)

    def scroll(self, rows: int) -> None:
        """Scroll down (positive) or up."""
        if self.frame is None or self.frame.search is None:
            return
        most = max(0, len(self.frame.search.loads) - self.size.height + 1)
        self.top = min(max(self.top + rows, 0), most)
        self.watch_frame(self.frame)


def draw_table(progress: SearchProgress, objective: int, *, size: tuple[int, int], top: int = 0) -> list[TextRow]:
    """Return a head and a row for each load; of the objectives the chosen one, then others as far as there is room."""
    width, height = size
    order = [objective, *(each for each in range(len(progress.objectives)) if each != objective)]
    shown = order[: max((width - _FIRST) // _COLUMN, 1)] if progress.objectives else []
    head: list[Run] = [(f"{progress.unit:>9} {'from':>8} {'for':>6}  {'':<13}", "muted")]
    head += [
        (f"{shortened(sanitize_line(progress.objectives[each].label), _COLUMN - 1):<{_COLUMN}}", "muted")
        for each in shown
    ]
    newest = list(reversed(progress.loads))
    rows = [_row(each, progress, shown) for each in newest[top : top + max(height - 1, 0)]]
    return [fitted(row, width) for row in [head, *rows]]


def _row(load: SearchedLoad, progress: SearchProgress, shown: Sequence[int]) -> list[Run]:
    seconds = formats.clock(round(load.end - load.begin))
    counts = load.number >= progress.uncounted
    remark = "queue grows" if load.queue else _PURPOSES.get(load.purpose, "")
    row: list[Run] = [
        (f"{progress.number(load.load):>9} ", "strong"),
        (f"{formats.clock(load.begin):>8} {seconds:>6}  ", ""),
        (f"{remark if counts else _UNCOUNTED:<13}", "warn" if load.queue and counts else "muted"),
    ]
    for place in shown:
        row += _figure(load.figures[place]) if place < len(load.figures) else [(" " * _COLUMN, "")]
    return row if counts else [(text, "muted") for text, _ in row]


def _figure(figure: LoadFigure) -> list[Run]:
    """Return `✓ 2.1 % [0.8, 5.4] of 105`, or `✓ 143 ms [130, 158] of 105` for a mean, in a column."""
    if figure.share is None:
        return [(f"{'○ no sample yet':<{_COLUMN}}", "muted")]
    symbol, style = MARKS.get(figure.verdict, MARKS["open"])
    if figure.mean is not None:
        return [(f"{symbol} ", style), (f"{_mean(figure.mean, figure):<{_COLUMN - 2}}", "")]
    ends = f"[{percent(figure.low)}, {percent(figure.high)}]".replace(" %", "")
    text = f"{percent(figure.share):>6} {ends:<12}of {formats.count(figure.counted)}"
    return [(f"{symbol} ", style), (f"{text:<{_COLUMN - 2}}", "")]


def _mean(mean: float, figure: LoadFigure) -> str:
    """Return a mean with its interval in its own unit; without the interval while that is not known."""
    scale, unit = (MS_PER_S, "ms") if mean < _IN_SECONDS else (1.0, "s")
    value, low, high = (f"{each * scale:.3g}" for each in (mean, figure.low, figure.high))
    ends = f"[{low}, {high}]" if math.isfinite(figure.high) else ""
    return f"{value:>4} {unit:<2} {ends:<12} of {formats.count(figure.counted)}"
