"""Tables that compare measured with simulated values, and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servetop.simulator.predict.prediction import CellPrediction

Cells = Sequence[CellPrediction]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One cell. Cells used for calibration (not `held_out`) and `suspect` cells are excluded from the statistics."""

    cell: str
    measured: float
    simulated: float
    held_out: bool = True
    suspect: bool = False

    @property
    def error(self) -> float:
        """Relative error of the simulated value; the value itself if 0 was measured."""
        return self.simulated / self.measured - 1.0 if self.measured else self.simulated

    @property
    def counts(self) -> bool:
        """Whether the row is part of the error statistics."""
        return self.held_out and not self.suspect and self.measured != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTarget:
    """A requirement on a table, and whether the simulation meets it."""

    text: str
    found: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One published table with simulated values and targets."""

    name: str
    title: str
    unit: str
    rows: tuple[TableRow, ...]
    targets: tuple[PublishedTarget, ...]
    note: str = ""

    @property
    def mean_error(self) -> float:
        """Mean absolute relative error of the rows that count."""
        return mean_error(self.rows)

    @property
    def max_error(self) -> float:
        """Largest absolute relative error of the rows that count."""
        return max_error(self.rows)


def mean_error(rows: Sequence[TableRow]) -> float:
    """Mean absolute relative error of the rows that count; 0 when there are none."""
    errors = [abs(row.error) for row in rows if row.counts]
    return sum(errors) / len(errors) if errors else 0.0


def max_error(rows: Sequence[TableRow]) -> float:
    """Largest absolute relative error of the rows that count."""
    return max((abs(row.error) for row in rows if row.counts), default=0.0)


def at_most(text: str, value: float, *, limit: float) -> PublishedTarget:
    """Return the target that a relative error is at most `limit`."""
    return PublishedTarget(text=f"{text} at most {limit:.1%}", found=f"{value:.2%}", met=value <= limit)


def errors_within(rows: Sequence[TableRow], *, mean: float, largest: float) -> tuple[PublishedTarget, PublishedTarget]:
    """Return the targets of the mean error of held-out cells and of the largest error."""
    return (
        at_most("mean error of the held-out cells", mean_error(rows), limit=mean),
        at_most("largest error", max_error(rows), limit=largest),
    )


def holds(text: str, met: bool, *, found: str) -> PublishedTarget:
    """Return the target that a property holds."""
    return PublishedTarget(text=text, found=found, met=met)


def report(tables: Sequence[Table]) -> dict[str, Any]:
    """Return `{"tables": [{"name", "rows": [...], "targets": [...], ...}], "passed"}`."""
    return {"tables": [_table_data(table) for table in tables], "passed": all(_met(table) for table in tables)}


def markdown(tables: Sequence[Table]) -> str:
    """Return the tables as Markdown, as in docs/explanation/simulator.md."""
    return "\n".join(line for table in tables for line in _table_lines(table))


def _met(table: Table) -> bool:
    return all(target.met for target in table.targets)


def _table_data(table: Table) -> dict[str, Any]:
    rows = [
        {
            "cell": row.cell,
            "measured": row.measured,
            "simulated": row.simulated,
            "error": row.error,
            "held_out": row.held_out,
            "suspect": row.suspect,
        }
        for row in table.rows
    ]
    targets = [{"text": each.text, "found": each.found, "met": each.met} for each in table.targets]
    return {
        "name": table.name,
        "title": table.title,
        "unit": table.unit,
        "rows": rows,
        "mean_error": table.mean_error,
        "max_error": table.max_error,
        "targets": targets,
        "passed": _met(table),
        "note": table.note,
    }


def _table_lines(table: Table) -> list[str]:
    lines = [
        f"### {table.title}",
        "",
        f"| cell | measured ({table.unit}) | simulated | error | |",
        "|---|---|---|---|---|",
    ]
    for row in table.rows:
        mark = "suspect" if row.suspect else "" if row.held_out else "calibrated"
        error = f"{row.error:+.1%}" if row.measured else ""
        lines.append(f"| {row.cell} | {row.measured:,g} | {row.simulated:,.0f} | {error} | {mark} |")
    held_out = sum(row.counts for row in table.rows)
    lines += ["", f"{held_out} held-out cells: mean error {table.mean_error:.2%}, largest {table.max_error:.2%}."]
    lines += [f"- {'met' if each.met else 'MISSED'}: {each.text} ({each.found})" for each in table.targets]
    return [*lines, *([table.note] if table.note else []), ""]
