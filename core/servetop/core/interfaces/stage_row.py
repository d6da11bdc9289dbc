"""The row that a recording has of a stage that begins as planned."""

from __future__ import annotations

from servetop.core.config import StageConfig
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.events import StageChange
from servetop.core.same_fields import from_same_fields


def planned_row(stage: StageConfig, *, at: float = 0.0, index: int = 0) -> StageChange:
    """Return the row of a planned stage that begins at `at` under the number `index`."""
    return from_same_fields(
        StageChange,
        stage,
        at=at,
        index=index,
        label=stage.label,
        ramp_strategy=None if stage.ramp_from is None else stage.ramp_strategy,
        settings=settings_text(stage.settings),
    )
