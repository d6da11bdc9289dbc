"""Goodput of a sweep: batch size down, load across, on the terminal and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from rich.console import Group

from servetop.analysis.sweep.batch_rows import RowKey, grouped
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_text import objectives_text
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.text import formats
from servetop.reports.tables import light_table, titled

BEST, MISSED, FEW, REPEATED = "★", "✗", "~", "×"
_Figure = Callable[[SweepCell], str]


def goodput_tables(sweep: SweepVerdict) -> list[Group]:
    """Goodput, and the share within the objectives; none without objectives."""
    return [_table(sweep, title, figure) for title, figure in _figures(sweep)]


def goodput_markdown(sweep: SweepVerdict) -> list[str]:
    """Return the same tables as Markdown, each with its title."""
    lines: list[str] = []
    for title, figure in _figures(sweep):
        columns, rows = _columns(sweep), _rows(sweep)
        heads = ["batch", *(_load_name(load) for load in columns)]
        lines += ["", f"{title} ({_legend(sweep)})", "", _row(heads), _row(["---:"] * len(heads))]
        lines += [_row(_texts(sweep, key, cells, columns, figure)) for key, cells in rows.items()]
    return lines


def _figures(sweep: SweepVerdict) -> list[tuple[str, _Figure]]:
    if not sweep.objectives:
        return []
    limits = objectives_text(sweep.objectives)
    return [
        (f"Goodput within {limits}, req/s", lambda cell: formats.number(cell.request_goodput)),
        (f"Requests within {limits}", lambda cell: formats.percent(cell.share_within, zeros="never")),
    ]


def _table(sweep: SweepVerdict, title: str, figure: _Figure) -> Group:
    columns = _columns(sweep)
    table = light_table("batch", *(_load_name(load) for load in columns))
    for key, cells in _rows(sweep).items():
        table.add_row(*_texts(sweep, key, cells, columns, figure))
    return titled(f"{title} ({_legend(sweep)})", table)


def _texts(
    sweep: SweepVerdict, key: RowKey, cells: Sequence[SweepCell], columns: Sequence[tuple[bool, float]], figure: _Figure
) -> list[str]:
    by_load = {(cell.closed, cell.load): cell for cell in cells}
    named = "–" if key[0] is None else str(key[0])
    limited = named if key[1] is None else f"{named} c{key[1]}"
    name = " · ".join(filter(None, (settings_label(key[3]), limited)))
    found = [by_load.get(column) for column in columns]
    return [name, *("" if cell is None else f"{figure(cell)}{marks(sweep, cell)}" for cell in found)]


def marks(sweep: SweepVerdict, cell: SweepCell) -> str:
    """Return the marks behind a figure: the best cell, or one that misses the objectives; few requests; repeats."""
    found = [
        BEST if cell == sweep.best else "",
        MISSED if cell.kept is False else "",
        "" if cell.steady else FEW,
        f"{REPEATED}{len(cell.stages)}" if len(cell.stages) > 1 else "",
    ]
    text = "".join(found)
    return f" {text}" if text else ""


def _legend(sweep: SweepVerdict) -> str:
    shown = "".join(marks(sweep, cell) for cell in sweep.cells)
    loads = "in flight" if sweep.cells[0].closed else "requests/s"
    share = formats.percent(sweep.kept_share, zeros="never")
    parts = {
        f"{BEST} best": BEST in shown,
        f"{MISSED} under {share} within": MISSED in shown,
        f"{FEW} not steady": FEW in shown,
        repeats_legend(sweep): REPEATED in shown,
    }
    down = "settings and batch size" if any(cell.settings for cell in sweep.cells) else "batch size"
    return "; ".join([f"{down} down, {loads} across", *(part for part, used in parts.items() if used)])


def repeats_legend(sweep: SweepVerdict) -> str:
    """Return what `×n` is: repeats of one start do not show how starts differ."""
    one = all(cell.starts == 1 for cell in sweep.cells)
    return f"{REPEATED}n mean of n{' repeats of one start' if one else ''}"


def _columns(sweep: SweepVerdict) -> list[tuple[bool, float]]:
    return sorted({(cell.closed, cell.load) for cell in sweep.cells})


def _rows(sweep: SweepVerdict) -> Mapping[RowKey, Sequence[SweepCell]]:
    return grouped(sweep.cells)


def _load_name(load: tuple[bool, float]) -> str:
    closed, value = load
    if math.isinf(value):
        return "∞"
    return f"c{value:g}" if closed else f"{value:g}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
