"""The row that a recording has of a stage that begins as planned."""

from __future__ import annotations

from servetop.core.config import StageConfig
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.events import StageChange


def planned_row(stage: StageConfig, *, at: float = 0.0, index: int = 0) -> StageChange:
    """Return the row of a planned stage that begins at `at` under the number `index`."""
    return StageChange(
        at=at,
        index=index,
        label=stage.label,
        request_rate=stage.request_rate,
        max_concurrency=stage.max_concurrency,
        max_num_seqs=stage.max_num_seqs,
        repeat=stage.repeat,
        warmup=stage.warmup,
        ramp_from=stage.ramp_from,
        ramp_strategy=None if stage.ramp_from is None else stage.ramp_strategy,
        duration=stage.duration,
        num_prompts=stage.num_prompts,
        settings=settings_text(stage.settings),
    )
