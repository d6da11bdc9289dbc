"""The cells of a sweep, published, measured and simulated side by side, as the texts of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from servetop.analysis.sweep.sweep_cell import CellReference, SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text import formats

_SUSPECT = "?"
_UNIT = {"output_throughput": "output tok/s", "preemptions": "preemptions"}
"""Figures by field of SweepCell and of CellReference."""
_TEXT = {"output_throughput": formats.in_full, "preemptions": formats.exact}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """The texts of one table."""

    title: str
    columns: Sequence[str]
    """The first one, of the cells' names, is empty; a name may have two lines."""
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    """Lines below the table."""


def reference_texts(sweep: SweepVerdict) -> list[ReferenceTable]:
    """Return a table for each figure that a study published or the simulator gives, with a row for each cell."""
    return [table for figure in _UNIT if (table := _table(sweep, figure)) is not None]


def _table(sweep: SweepVerdict, figure: str) -> ReferenceTable | None:
    """Return the table of one figure: of preemptions only if a study published them."""
    published = [each.published for each in sweep.cells if _value(each.published, figure) is not None]
    simulated = any(_value(each.simulated, figure) is not None for each in sweep.cells)
    rated = figure == "output_throughput"
    if not published and not (simulated and rated):
        return None
    columns: dict[str, Callable[[SweepCell], str]] = {}
    if published:
        columns["published"] = lambda each: _published(each.published, figure)
    columns["measured"] = lambda each: _TEXT[figure](getattr(each, figure))
    if simulated:
        columns["simulated"] = lambda each: _TEXT[figure](_value(each.simulated, figure))
    if published and rated:
        columns["measured /\npublished"] = lambda each: _ratio(each.published)
    if simulated and rated:
        columns["measured /\nsimulated"] = lambda each: _ratio(each.simulated)
    names = [name for name in ("published", "measured", "simulated") if name in columns]
    *first, last = names
    return ReferenceTable(
        title=f"{', '.join(first).capitalize()} and {last} {_UNIT[figure]}",
        columns=("", *columns),
        rows=[[each.name, *(text(each) for text in columns.values())] for each in sweep.cells],
        notes=_notes(sweep, published) if published else (),
    )


def _notes(sweep: SweepVerdict, published: Sequence[CellReference | None]) -> list[str]:
    if sweep.published is None:
        return []
    set_up = f" ({sweep.published.set_up})" if sweep.published.set_up else ""
    ratio = sweep.published.mean_ratio
    mean = "" if ratio is None else f"; measured / published: geometric mean {formats.number(ratio)}"
    notes = [f"published: {sweep.published.source}{set_up}{mean}"]
    if any(each is not None and each.suspect for each in published):
        notes.append(f"{_SUSPECT} contradicts other published cells or the offered load: in no mean")
    return notes


def _value(reference: CellReference | None, figure: str) -> float | None:
    value: float | None = None if reference is None else getattr(reference, figure)
    return value


def _published(reference: CellReference | None, figure: str) -> str:
    mark = f" {_SUSPECT}" if reference is not None and reference.suspect else ""
    return _TEXT[figure](_value(reference, figure)) + mark


def _ratio(reference: CellReference | None) -> str:
    return formats.number(None if reference is None else reference.ratio)
