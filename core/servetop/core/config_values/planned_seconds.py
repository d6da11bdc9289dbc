"""How long the load of a stage lasts, as far as its plan tells."""

from __future__ import annotations

import math

from servetop.core.config import StageConfig


def planned_seconds(stage: StageConfig) -> float | None:
    """Return when the last request of a stage is due; None if that depends on the engine."""
    ends = [] if stage.duration is None else [stage.duration]
    if stage.num_prompts is not None and math.isfinite(stage.request_rate):
        ends.append(stage.num_prompts / stage.request_rate)
    return min(ends, default=None)
