"""The part of a page about a search: its charts over the load and over time, and a table of the loads it kept."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.interfaces.search_state import LoadFigure, SearchedLoad
from servetop.core.text import formats
from servetop.reports.page.html_text import Markup, data_table, element
from servetop.tui.state.search_progress import SearchProgress

_SIGNS = {"kept": "●", "missed": "✗"}
_OPEN = "○"
_PURPOSES = {"recover": "recovery", "confirm": "confirmation"}
_NOTE = (
    "Each point is a load with the share of samples that missed a limit, or a mean, and its interval of 95 %: ● kept, "
    "✗ missed, ○ open. Dashed: what is allowed; shaded: the interval of the answer."
)


def search_section(progress: SearchProgress | None) -> Markup | None:
    """Return the section of a search, whose charts a script draws; None for other runs."""
    if progress is None or not progress.loads:
        return None
    note = _NOTE if progress.states else "This recording is of a format before 1.16, which has no figures of the loads."
    return element(
        "section",
        element("h2", "Search"),
        element("p", note, class_="note"),
        element("div", id="search", class_="charts"),
        _loads_table(progress),
    )


def _loads_table(progress: SearchProgress) -> Markup:
    columns = (progress.unit, "from", "for", "purpose", *(each.label for each in progress.objectives))
    rows = [_row(progress, each) for each in progress.loads]
    return data_table(columns, rows, caption="Loads in order of time: share that missed the limit, or mean")


def _row(progress: SearchProgress, load: SearchedLoad) -> Sequence[str]:
    if load.number < progress.uncounted:
        remark = "not counted"
    else:
        remark = "queue grows" if load.queue else _PURPOSES.get(load.purpose, "")
    figures = [_figure_text(each) for each in load.figures]
    figures += [""] * (len(progress.objectives) - len(figures))
    seconds = formats.clock(round(load.end - load.begin))
    return (progress.number(load.load), formats.clock(load.begin), seconds, remark, *figures)


def _figure_text(figure: LoadFigure) -> str:
    """Return a figure with its interval and number of samples, and the sign of its verdict."""
    if figure.share is None:
        return "no sample"
    sign, count = _SIGNS.get(figure.verdict, _OPEN), formats.count(figure.counted)
    if figure.mean is None:
        low, high = (f"{each * 100:.3g}" for each in (figure.low, figure.high))
        return f"{figure.share * 100:.3g} % [{low}, {high}] of {count} {sign}"
    ends = ""
    if math.isfinite(figure.high):
        ends = f" [{formats.seconds(figure.low)}, {formats.seconds(figure.high)}]"
    return f"{formats.seconds(figure.mean)}{ends} of {count} {sign}"


def search_data(progress: SearchProgress | None) -> dict[str, object] | None:
    """Return the loads, objectives and decisions for the page's script; None without decisions."""
    if progress is None or not progress.states:
        return None
    return {
        "unit": progress.unit,
        "objectives": [
            {"label": each.label, "allowed": each.allowed, "meanLimit": each.mean_limit} for each in progress.objectives
        ],
        "loads": [
            {
                "load": each.load,
                "begin": each.begin,
                "end": each.end,
                "figures": [_figure_data(figure) for figure in each.figures],
            }
            for each in progress.loads
            if each.number >= progress.uncounted
        ],
        "states": [
            {"at": each.at, "answers": [{"low": found.low, "high": found.high} for found in each.answers]}
            for each in progress.states
        ],
        "binding": progress.binding,
        "slo": list(progress.search.slo),
    }


def _figure_data(figure: LoadFigure) -> dict[str, object] | None:
    """Return a figure, a share 0-1 or a mean in seconds; None without samples, and an unknown end of it as None."""
    if figure.share is None:
        return None
    value = figure.share if figure.mean is None else figure.mean
    return {
        "value": value,
        "low": figure.low,
        "high": figure.high if math.isfinite(figure.high) else None,
        "counted": figure.counted,
        "verdict": figure.verdict,
    }
