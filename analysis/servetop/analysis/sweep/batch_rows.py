"""The load that each batch size of a sweep sustains, within what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from servetop.analysis.diagnosis.rate_interval import RateInterval, within
from servetop.analysis.diagnosis.wording import interval_text
from servetop.analysis.field_metadata import OMITTED, PARSED
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.text.formats import rate_number

RowKey = tuple[int | None, int | None, bool, str | None]
"""Batch size, concurrency limit, whether its loops are closed, and settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """What one batch size sustains; loads in requests/s, in closed loops the concurrency."""

    max_num_seqs: int | None
    max_concurrency: int | None
    """The limit of all cells of the row; None without one, and in closed loops, where it is the load."""
    closed: bool
    kept: float | None
    """The highest load whose cell kept the objectives; without objectives, whose cell had no lasting overload."""
    steady: bool
    """Whether the cell of that load had a steady window."""
    missed: float | None
    """The lowest load above it whose cell did not; None if no such load was measured."""
    estimate: float | None
    """The sustainable rate by the model of the engine; None if unknown, or if it contradicts what was measured.

    It is below `missed`, and above every load that a cell with a steady window kept.
    """
    estimate_interval: RateInterval | None
    """Where the estimate lies with a probability of 90 %, within what was measured; None without one."""
    limit: str | None
    """What the engine ran out of, such as `batch-bound`; None without an overload."""
    start: float
    """When its first cell began, seconds."""
    settings: str | None = field(default=None, metadata=OMITTED | PARSED)
    """What its cells set besides, by name; None without any."""

    @property
    def key(self) -> RowKey:
        """What its cells have in common."""
        return self.max_num_seqs, self.max_concurrency, self.closed, self.settings

    @property
    def name(self) -> str:
        """The row in words, such as `in 512 · batch 64`; empty if its batch size is unknown."""
        limit = "" if self.max_concurrency is None else f"concurrency {self.max_concurrency}"
        batch = "" if self.max_num_seqs is None else f"batch {self.max_num_seqs}"
        return ", ".join(part for part in (settings_label(self.settings), batch, limit) if part)

    @property
    def kept_briefly(self) -> bool:
        """Whether a load above the estimate was kept, though too shortly to prove more than that."""
        return self.kept is not None and self.estimate is not None and self.kept > self.estimate

    @property
    def sustainable(self) -> str:
        """The sustainable load, such as `≈ 6.5 [5.8, 7.1]`, `≥ 24`, `8–16 (not steady)` or `< 8`; empty if unknown."""
        return f"{self.sustained_load}{self.doubt}"

    @property
    def sustained_load(self) -> str:
        """The same without doubt about a steady state."""
        if self.estimate is not None:
            return f"≈ {rate_number(self.estimate)}{interval_text(self.estimate_interval)}"
        if self.kept is not None:
            return f"≥ {self.kept:g}" if self.missed is None else f"{self.kept:g}–{self.missed:g}"
        return "" if self.missed is None else f"< {self.missed:g}"

    @property
    def doubt(self) -> str:
        """What is said behind a load that was kept, but in no steady state; else empty."""
        return " (not steady)" if self.estimate is None and self.kept is not None and not self.steady else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimit:
    """The limit of one batch size, estimated from its overloaded cells."""

    limit: str
    estimate: float | None = None
    """Sustainable requests/s; None if unknown."""
    interval: RateInterval | None = None
    """Where they lie with a probability of 90 %; None if that is unknown."""
    advised_batch: int | None = None


def grouped(cells: Iterable[SweepCell]) -> dict[RowKey, list[SweepCell]]:
    """Return the cells of each batch size by ascending load; rows by settings, as they come, and batch size."""
    rows: dict[RowKey, list[SweepCell]] = {}
    listed = list(cells)
    place = {settings: at for at, settings in enumerate(dict.fromkeys(each.settings for each in listed))}
    for cell in sorted(listed, key=lambda each: (place[each.settings], each.max_num_seqs or 0, each.closed, each.load)):
        rows.setdefault(row_key(cell), []).append(cell)
    return rows


def row_key(cell: SweepCell) -> RowKey:
    """Return the key of the row that contains a cell."""
    return cell.max_num_seqs, None if cell.closed else cell.max_concurrency, cell.closed, cell.settings


def batch_rows(
    cells: Sequence[SweepCell], *, keeps: Callable[[SweepCell], bool | None], limits: Mapping[RowKey, RowLimit]
) -> tuple[BatchRow, ...]:
    """Return what each batch size sustains; `keeps` returns whether the engine sustained a cell's load."""
    return tuple(_row(key, row, keeps, limits.get(key)) for key, row in grouped(cells).items())


def _row(
    key: RowKey, cells: Sequence[SweepCell], keeps: Callable[[SweepCell], bool | None], limit: RowLimit | None
) -> BatchRow:
    judged = [(cell.load, keeps(cell)) for cell in cells if math.isfinite(cell.load)]
    kept, steady = max(
        ((cell.load, cell.steady) for cell in cells if math.isfinite(cell.load) and keeps(cell)), default=(None, False)
    )
    missed = min((load for load, it in judged if it is False and load > (kept or 0.0)), default=None)
    estimate = None if limit is None or cells[0].closed else limit.estimate
    proven = max((cell.load for cell in cells if cell.steady and keeps(cell)), default=0.0)
    interval = None if limit is None else limit.interval
    between = estimate is not None and missed is not None and proven < estimate < missed
    return BatchRow(
        max_num_seqs=key[0],
        max_concurrency=key[1],
        closed=key[2],
        kept=kept,
        steady=steady,
        missed=missed,
        estimate=estimate if between else None,
        estimate_interval=within(interval, estimate, proven, missed) if between else None,
        limit=None if limit is None else limit.limit,
        start=min(cell.start for cell in cells),
        settings=key[3],
    )
