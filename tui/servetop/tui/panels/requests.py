"""Requests around an instant: a table, and beside it their phases on a time axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.events import RequestRecord
from servetop.tui import formats
from servetop.tui.lines import Row, Run, fitted, joined, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.request_rows import COLUMNS, PHASES, RequestRow, bar, ended_at, ordered, row_of
from servetop.tui.run_so_far import MOST_REQUESTS, Moment

_SHORTEST = 2.0
"""Seconds of the time axis at least."""
_STEPS = 8
"""The time axis moves by such parts of its length, so that bars stand still in between."""
_FIELDS = (
    ("id", "id", 8), ("due", "due", 8), ("ttft", "TTFT", 8), ("e2el", "E2E", 8), ("itl_max", "max ITL", 8),
    ("status", "status", 11), ("itl", "ITL", 8), ("prompt_tokens", "in", 7), ("output_tokens", "out", 6),
)  # fmt: skip
"""Column, heading and cells, most important first."""
_LEAST_BAR = 24


class RequestsPanel(Panel):
    """One row a request; only the rows on the screen are drawn, and only the last few hundred requests are read."""

    order, descending, failed_only = COLUMNS[0], True, False
    selected: int | None = None
    """The id of the request that enter opens."""
    rows: Sequence[RequestRow] = ()
    """All that can be scrolled through, in order."""
    _top = 0

    def title(self, moment: Moment) -> Sequence[Row]:
        """How many, and what is not known of those in flight."""
        at, load = moment.stats.at, moment.stats.load
        under_way = sum(ended_at(row.record) > at for row in self.rows)
        last = "last " if len(self.rows) >= MOST_REQUESTS else ""
        kind = f"{'failed ' if self.failed_only else ''}in {formats.seconds(self.limit)}"
        parts: list[Row] = [[("Requests ", "title"), (f"{last}{len(self.rows)}", "strong"), (f" {kind}", "")]]
        parts.append([("in flight ", ""), (formats.count(load.in_flight), "strong")])
        if load.in_flight > under_way and not self.failed_only:
            why = "in the recording until they end" if moment.live else "shown: they end later, or are too many"
            parts.append([(f"{load.in_flight - under_way} of them not {why}", "muted")])
        return parts

    def subtitle(self, moment: Moment) -> Row:  # noqa: ARG002
        """The keys."""
        keys = (
            ("↑ ↓", "choose"),
            ("Enter", "open"),
            ("s", "sort"),
            ("S", "reverse"),
            ("f", "failed only"),
            ("esc", "back"),
        )
        return joined(([(key, "key"), (f" {name}", "muted")] for key, name in keys), width=self.size.width, gap="  ")

    def peak(self, moment: Moment) -> float:
        """The length of the time axis, not yet rounded: one slow request, and those in the rows beside it."""
        tail = moment.stats.latencies["e2el"].p90 if moment.stats.latencies else math.nan
        tail = _SHORTEST if math.isnan(tail) else max(tail * 1.25, _SHORTEST)
        return tail + min(self.size.height / max(moment.stats.rates.sent, 1e-3), 2 * tail)

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """Read, order, and draw what fits."""
        at = moment.stats.at
        step = self.limit / _STEPS
        end = math.ceil(at / step - 1e-9) * step or step
        axis = (end - self.limit, end)
        rows = [row_of(record, at) for record in moment.requests(axis[0], at)]
        rows = [row for row in rows if row.failed or not self.failed_only]
        self.rows = ordered(rows, self.order, descending=self.descending)
        place = next((number for number, row in enumerate(self.rows) if row.id == self.selected), 0)
        room = max(height - 1, 1)
        self._top = max(0, min(max(self._top, place - room + 1), place, len(self.rows) - 1))
        shown = self.rows[self._top : self._top + room]
        if not shown:
            return placard(_why_empty(moment, failed_only=self.failed_only), width=width, height=height)
        head = header(width, axis, order=self.order, descending=self.descending)
        return [head, *(request_row(row, width, axis, at=at, chosen=row.id == self.selected) for row in shown)]

    def choose(self, rows: int) -> None:
        """The row so many below the chosen one; the first time, the first."""
        places = [number for number, row in enumerate(self.rows) if row.id == self.selected]
        place = min(max(places[0] + rows, 0), len(self.rows) - 1) if places else 0
        self.selected = self.rows[place].id if self.rows else None
        self.watch_moment(self.moment)

    def chosen(self) -> RequestRecord | None:
        """The request to open: the chosen one, else the first."""
        first = self.rows[:1]
        return next(
            (row.record for row in (*self.rows, *first) if row.id == self.selected or self.selected is None), None
        )


def _fields(width: int) -> tuple[tuple[str, str, int], ...]:
    """As many columns as leave room for the bars."""
    kept = 3
    while kept < len(_FIELDS) and sum(each[2] for each in _FIELDS[: kept + 1]) + 2 + _LEAST_BAR <= width:
        kept += 1
    return _FIELDS[:kept]


def header(width: int, axis: tuple[float, float], *, order: str, descending: bool) -> Row:
    """Headings, an arrow at the one that orders, what the bars' shades mean, and the ends of their time axis."""
    arrow = "▼" if descending else "▲"
    names: list[Run] = [("  ", "")]
    for column, name, cells in _fields(width):
        text = f"{arrow}{name}" if column == order else name
        names.append((f" {text:<{cells - 1}}" if column == "status" else f"{text:>{cells}}",
                      "strong" if column == order else "muted"))  # fmt: skip
    room = width - sum(len(text) for text, _ in names) - 1
    left, right = (f"{formats.clock_time(at)[3:]}.{int(at * 10) % 10}" for at in axis)
    shades = joined([[(f"{glyph * 2}", style), (f" {name}", "muted")] for glyph, style, name in PHASES],
                    width=max(room - 18, 0), gap="  ") if room >= 42 else []  # fmt: skip
    used = sum(len(text) for text, _ in shades)
    gap = max(room - 14 - used, 0)
    return fitted([*names, (" ", ""), (left, "faint"), (" " * (gap // 2), ""), *shades,
                   (" " * (gap - gap // 2), ""), (right, "faint")], width)  # fmt: skip


def request_row(row: RequestRow, width: int, axis: tuple[float, float], *, at: float, chosen: bool) -> Row:
    """Figures at the left, bar at the right."""
    runs: list[Run] = [("▸ " if chosen else "  ", "key")]
    for column, _, cells in _fields(width):
        value = getattr(row, column)
        if column == "status":
            runs.append((f" {value:<{cells - 1}}", "bad" if row.failed else "muted"))
        elif column == "due":
            runs.append(
                (
                    f"{formats.clock_time(value)[3:]}.{int(value * 10 + 1e-6) % 10}".rjust(cells),
                    "strong" if chosen else "",
                )
            )
        else:
            whole = column in ("prompt_tokens", "output_tokens")
            text = str(value) if column == "id" else (formats.count(value) if whole else formats.seconds(value))
            runs.append((f"{text:>{cells}}", "strong" if chosen else ""))
    room = width - sum(len(text) for text, _ in runs) - 1
    return [*runs, (" ", ""), *bar(row.record, axis, max(room, 1), at=at)]


def _why_empty(moment: Moment, *, failed_only: bool) -> str:
    if failed_only:
        return "no request failed here"
    if moment.stats.load.in_flight:
        return f"{moment.stats.load.in_flight} requests in flight, none has ended yet: each is recorded when it ends"
    return "no request was under way here"
