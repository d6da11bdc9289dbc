"""The legend below the matrix of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.sweep.cell_checks import CELL_MARKS, CellOutcome
from servetop.tui.drawing.heat_map import SHADES
from servetop.tui.drawing.text_runs import TextRow, shortened
from servetop.tui.panels.detail.cdf import LABELS
from servetop.tui.state.sweep_cells import PERCENTILE, best_key, dips
from servetop.tui.state.sweep_predictions import PUBLISHED, SUSPECT
from servetop.tui.state.sweep_table import SweepTable

MATRIX_SHADES = SHADES[1:]
_INDENT = " " * (len(MATRIX_SHADES) + 1)
_GAPS = ("   ", "  ", " ")
"""Between two labels; the widest that takes no more rows than smaller ones."""
SKIPPED = "⊣"
"""Stands for the number of a cell that is not measured because its row has ended."""
_LONGEST_SOURCE = 40
_MEASURED = {False: "(measured in % of it)", True: "(preemptions, ▲ measured)"}
"""What stands behind a published figure, by whether it is a number of preemptions."""
_OUTCOMES = {
    CellOutcome.KEPT: "kept",
    CellOutcome.MISSED: "missed",
    CellOutcome.NOT_DECIDED: "not decided",
}


def legend(table: SweepTable, per_batch: int, width: int) -> list[TextRow]:
    """Return the legend of shades and of the marks in use: in as few rows as small gaps allow."""
    labels = [["tok/s"], *_marks_in_use(table, per_batch)]
    room = max(width - len(_INDENT), 1)
    first, *others = min((_wrapped(labels, room, gap=gap) for gap in _GAPS), key=len)
    return [[*MATRIX_SHADES, (f" {first}", "muted")], *([(f"{_INDENT}{row}", "muted")] for row in others)]


def _wrapped(labels: Sequence[Sequence[str]], room: int, *, gap: str) -> list[str]:
    """Return rows of labels; one that is longer than a row is divided between its pieces."""
    rows = [""]
    for pieces in labels:
        divided = pieces if len(" ".join(pieces)) > room else [" ".join(pieces)]
        for number, piece in enumerate(divided):
            row = f"{rows[-1]}{' ' if number else gap}{piece}" if rows[-1] else piece
            rows = [*rows, piece] if rows[-1] and len(row) > room else [*rows[:-1], row]
    return rows


def _marks_in_use(table: SweepTable, per_batch: int) -> list[Sequence[str]]:
    """Return a label for each mark on the matrix, in pieces that stay together."""
    cells, below = table.cells.values(), table.below[: per_batch - 1]
    done = {key: cell.output_rate for key, cell in table.cells.items() if not cell.running_now}
    outcomes = [f"{CELL_MARKS[each]} {text}" for each, text in _OUTCOMES.items() if each in table.checked.values()]
    used = [
        (_listed(table, per_batch), per_batch > 1),
        (["★ best"], best_key(table.cells) is not None),
        ([f"{SUSPECT} suspect"], "published" in below and any(SUSPECT in text for text in table.published.values())),
        (["✗ misses objective"], any(cell.missed for cell in cells if not cell.running_now)),
        (["thresholds", *outcomes], bool(outcomes)),
        (["▼ dip"], bool(dips(done))),
        (["▲ preempted"], any(cell.preempted for cell in cells)),
        (["~ not steady"], any(cell.unsteady for cell in cells)),
        (
            [f"×n mean of n{' repeats of one start' if table.one_start else ''}"],
            any(cell.repeats > 1 for cell in cells),
        ),
        (["… now"], any(cell.running_now for cell in cells)),
        (["· planned"], bool({*table.planned} - {*table.cells} - table.failed - table.skipped)),
        ([f"{SKIPPED} skipped"], bool(table.skipped - {*table.cells})),
        (["✗ failed"], bool(table.failed - {*table.cells})),
    ]
    return [label for label, shown in used if shown]


def _listed(table: SweepTable, per_batch: int) -> list[str]:
    """Return the figures below each throughput, as far as there is room for them in the matrix."""
    reference = "% vs baseline" if table.before else "≈ predicted"
    names = {
        "spread": f"± 95 % over n starts{' (≤: from 0)' if '≤' in ''.join(table.spreads.values()) else ''}",
        "latency": f"{LABELS[table.metric]} p{PERCENTILE}",
        "goodput": "goodput req/s",
        "reference": reference,
        "published": f"{PUBLISHED} {shortened(table.source, _LONGEST_SOURCE)} {_MEASURED[table.publishes_preemptions]}",
    }
    *before, last = ["below:", *(f"{names[what]}," for what in table.below[: per_batch - 1])]
    return [*before, last.removesuffix(",")]
