"""The verdict of a sweep: its best cell within the objectives, and what each batch size sustains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.field_metadata import INTERNAL, OMITTED
from servetop.analysis.sweep.batch_rows import BatchRow, RowKey, RowLimit, batch_rows, row_key
from servetop.analysis.sweep.cell_checks import CellChecks
from servetop.analysis.sweep.reference_figures import PublishedSource
from servetop.analysis.sweep.sweep_cell import SweepCell, best_cell, closest_cell
from servetop.core.units import MS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A limit of `--goodput`."""

    metric: str
    limit_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepVerdict:
    """What a sweep found; loads in requests/s, in closed loops the concurrency."""

    objectives: tuple[Objective, ...]
    kept_share: float
    """Fraction of the requests of a cell that must meet every objective."""
    best: SweepCell | None = field(metadata=OMITTED)
    """The best cell that keeps the objectives; None if none does, or if nothing was served."""
    closest: SweepCell | None = field(metadata=OMITTED)
    """The cell nearest to the objectives if none keeps them."""
    rows: tuple[BatchRow, ...]
    """What each batch size sustains, ascending."""
    cells: tuple[SweepCell, ...]
    """All cells that were measured as a whole, by batch size and load."""
    advised_batch: int | None = None
    """A larger batch size than any of the sweep that is worth a try; None if there is no advice on it."""
    published: PublishedSource | None = field(default=None, metadata=OMITTED)
    """Where the published figures of the cells come from; None without any."""
    checks: CellChecks | None = field(default=None, metadata=INTERNAL)
    """Whether the cells meet their thresholds, which the summary has apart; None without thresholds of cells."""

    @property
    def best_row(self) -> BatchRow | None:
        """The row of the best cell."""
        key = None if self.best is None else row_key(self.best)
        return next((row for row in self.rows if row.key == key), None)


def sweep_verdict(
    cells: Sequence[SweepCell],
    *,
    objectives: Mapping[str, float],
    limits: Mapping[RowKey, RowLimit],
    overloaded: frozenset[int] = frozenset(),
) -> SweepVerdict:
    """Judge the cells of a sweep.

    `objectives` are limits in seconds by metric, `limits` what the overloads of each batch size tell about the engine,
    and `overloaded` the stages with an overload.
    """

    def keeps(cell: SweepCell) -> bool | None:
        return cell.kept if objectives else not overloaded.intersection(cell.stages)

    best = best_cell(cells, objectives=bool(objectives))
    largest = max((cell.max_num_seqs or 0 for cell in cells), default=0)
    limit = None if best is None else limits.get(row_key(best))
    advised = None if limit is None else limit.advised_batch
    at_edge = best is not None and best.max_num_seqs == largest
    return SweepVerdict(
        objectives=tuple(Objective(metric=name, limit_ms=limit * MS_PER_S) for name, limit in objectives.items()),
        kept_share=KEPT_SHARE,
        best=best,
        closest=closest_cell(cells) if objectives and best is None else None,
        rows=batch_rows(cells, keeps=keeps, limits=limits),
        cells=tuple(cells),
        advised_batch=advised if at_edge and advised is not None and advised > largest else None,
    )
