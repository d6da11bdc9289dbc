"""A cell of a sweep that was not measured, because its row had ended."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.core.config import StageConfig
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.same_fields import from_same_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedCell:
    """A planned cell with a higher load than one that met a condition of `until`."""

    at: float
    """When it was decided, seconds of run time."""
    stage: int
    """Number of the stage that met the condition, in the same row."""
    label: str
    request_rate: float
    """Requests per second; `inf` is "as fast as the concurrency allows"."""
    max_concurrency: int | None = None
    max_num_seqs: int | None = None
    """The planned batch size; None leaves it to the engine."""
    repeat: int = 0
    """Repetition of the same cell, from 0."""
    settings: str | None = None  # JSON of what the cell sets besides the load (`config_values.cell_settings`)
    reason: str
    """The condition and the stage that met it, as in `p99 TTFT 812 ms > 500 ms at 24 req/s`."""

    @classmethod
    def of(cls, cell: StageConfig, *, at: float, stage: int, reason: str) -> SkippedCell:
        """Return the event of a planned cell."""
        return from_same_fields(
            cls,
            cell,
            at=at,
            stage=stage,
            label=cell.label,
            settings=settings_text(cell.settings),
            reason=reason,
        )

    def is_of(self, cell: StageConfig) -> bool:
        """Whether it is the event of this planned cell."""
        return self == SkippedCell.of(cell, at=self.at, stage=self.stage, reason=self.reason)
