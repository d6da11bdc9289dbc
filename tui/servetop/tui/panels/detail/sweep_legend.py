"""The legend below the matrix of a sweep."""

from __future__ import annotations

from servetop.analysis.sweep.cell_checks import CELL_MARKS, CellOutcome
from servetop.tui.drawing.heat_map import SHADES
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.panels.detail.cdf import LABELS
from servetop.tui.state.sweep_cells import PERCENTILE, best_key, dips
from servetop.tui.state.sweep_table import SweepTable

MATRIX_SHADES = SHADES[1:]
SKIPPED = "⊣"
"""Stands for the number of a cell that is not measured because its row has ended."""
_OUTCOMES = {
    CellOutcome.KEPT: "kept",
    CellOutcome.MISSED: "missed",
    CellOutcome.NOT_DECIDED: "not decided",
}


def legend(table: SweepTable, per_batch: int, width: int) -> TextRow:
    """Return the legend of shades and of the marks in use, with smaller gaps if there is less room."""
    cells = table.cells.values()
    done = {key: cell.output_rate for key, cell in table.cells.items() if not cell.running_now}
    outcomes = [f"{CELL_MARKS[each]} {text}" for each, text in _OUTCOMES.items() if each in table.checked.values()]
    used = {
        f"below: {_listed(table, per_batch)}": per_batch > 1,
        "★ best": best_key(table.cells) is not None,
        "✗ misses objective": any(cell.missed for cell in cells if not cell.running_now),
        f"thresholds {' '.join(outcomes)}": bool(outcomes),
        "▼ dip": bool(dips(done)),
        "▲ preempted": any(cell.preempted for cell in cells),
        "~ not steady": any(cell.unsteady for cell in cells),
        f"×n mean of n{' repeats of one start' if table.one_start else ''}": any(cell.repeats > 1 for cell in cells),
        "… now": any(cell.running_now for cell in cells),
        "· planned": bool({*table.planned} - {*table.cells} - table.failed - table.skipped),
        f"{SKIPPED} skipped": bool(table.skipped - {*table.cells}),
        "✗ failed": bool(table.failed - {*table.cells}),
    }
    labels = ["tok/s", *(label for label, shown in used.items() if shown)]
    gap = next((gap for gap in ("   ", "  ") if len(MATRIX_SHADES) + 1 + len(gap.join(labels)) <= width), " ")
    return [*MATRIX_SHADES, (f" {gap.join(labels)}", "muted")]


def _listed(table: SweepTable, per_batch: int) -> str:
    """Return the figures below each throughput, as far as there is room for them."""
    reference = "% vs baseline" if table.before else "≈ predicted"
    names = {
        "spread": "± 95 % over n starts",
        "latency": f"{LABELS[table.metric]} p{PERCENTILE}",
        "goodput": "goodput req/s",
        "reference": reference,
    }
    return ", ".join(names[what] for what in table.below[: per_batch - 1])
