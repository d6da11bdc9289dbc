"""Whether each cell of a sweep meets its thresholds (`cell_threshold`), and that in words."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from servetop.analysis.field_metadata import INTERNAL, OMITTED, PARSED, RATE
from servetop.core.text.counted import counted

_NAMED = 2
"""Thresholds that are named in a sentence; more are counted."""


class CellOutcome(StrEnum):
    """Whether a cell meets its thresholds, in order of importance."""

    MISSED = "missed"
    NOT_DECIDED = "not decided"
    """Its figures do not allow an answer, such as a p99 of a few requests."""
    KEPT = "kept"


CELL_MARKS = {CellOutcome.KEPT: "✓", CellOutcome.MISSED: "!", CellOutcome.NOT_DECIDED: "?"}
"""What stands behind the figure of a cell; `✗` is one that misses the objectives of `goodput`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdCheck:
    """One threshold at one cell."""

    threshold: str
    """The condition in the words of the sweep file, such as `p99_ttft_ms<=500`."""
    outcome: CellOutcome
    value: float | None
    """The cell's figure, of several repeats their mean; None if not measured."""
    text: str
    """The figure in words, or why it decides nothing: `p99 TTFT is 812 ms, must be ≤ 500 ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCell:
    """One cell and its thresholds."""

    label: str
    request_rate: float | None = field(metadata=RATE)
    max_concurrency: int | None
    max_num_seqs: int | None
    stages: tuple[int, ...]
    """The stages that count, in order of time."""
    outcome: CellOutcome
    thresholds: tuple[ThresholdCheck, ...]
    settings: str | None = field(default=None, metadata=OMITTED | PARSED)
    """What it sets besides batch size and load, by name; None without any."""

    @property
    def text(self) -> str:
        """The load of the cell, and the first threshold that has the outcome of the cell."""
        deciding = next(each for each in self.thresholds if each.outcome is self.outcome)
        return f"{self.label}: {deciding.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChecks:
    """All cells of a sweep that were measured or failed; skipped ones have no outcome."""

    thresholds: tuple[str, ...]
    words: tuple[str, ...] = field(metadata=INTERNAL)
    """The thresholds as people read them, such as `p99 TTFT ≤ 500 ms`."""
    kept: int
    missed: int
    not_decided: int
    cells: tuple[CheckedCell, ...]

    @classmethod
    def of(cls, thresholds: Sequence[str], words: Sequence[str], cells: Sequence[CheckedCell]) -> CellChecks:
        """Count the outcomes of cells."""
        outcomes = [cell.outcome for cell in cells]
        return cls(
            thresholds=tuple(thresholds),
            words=tuple(words),
            kept=outcomes.count(CellOutcome.KEPT),
            missed=outcomes.count(CellOutcome.MISSED),
            not_decided=outcomes.count(CellOutcome.NOT_DECIDED),
            cells=tuple(cells),
        )

    def among(self, ended: Container[int]) -> CellChecks:
        """Return the cells of which all stages have ended."""
        cells = [cell for cell in self.cells if all(stage in ended for stage in cell.stages)]
        return CellChecks.of(self.thresholds, self.words, cells)

    @property
    def headline(self) -> str:
        """How many cells meet all thresholds: `5 of 8 cells keep p99 TTFT ≤ 500 ms, 1 not decided`."""
        verb = "keep" if len(self.cells) > 1 else "keeps"
        left = f", {self.not_decided} not decided" if self.not_decided else ""
        return f"{self._share(self.kept)} {verb} {self._named}{left}"

    @property
    def unmet(self) -> str:
        """Why the sweep fails: how many cells miss a threshold, and the first of them; empty if none does."""
        found = self.with_outcome(CellOutcome.MISSED)
        verb = "miss" if self.missed > 1 else "misses"
        missed = self._named if len(self.words) == 1 else "a threshold"
        return f"{self._share(self.missed)} {verb} {missed}: {_first(found)}" if found else ""

    @property
    def undecided(self) -> str:
        """Why the sweep does not decide; empty if each cell has an answer."""
        found = self.with_outcome(CellOutcome.NOT_DECIDED)
        cells = self._share(self.not_decided)
        return f"cannot tell whether {cells} keep {self._named}: {_first(found)}" if found else ""

    def with_outcome(self, outcome: CellOutcome) -> list[CheckedCell]:
        """Return the cells with one outcome."""
        return [cell for cell in self.cells if cell.outcome is outcome]

    def _share(self, count: int) -> str:
        return f"{count} of {counted(len(self.cells), 'cell')}"

    @property
    def _named(self) -> str:
        named = self.words if len(self.words) <= _NAMED else (f"all {len(self.words)} thresholds",)
        return " and ".join(named)


def _first(cells: Sequence[CheckedCell]) -> str:
    return cells[0].text + (f" (and {len(cells) - 1} more)" if cells[1:] else "")
