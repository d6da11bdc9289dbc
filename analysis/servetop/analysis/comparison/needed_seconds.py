"""How long a stage has to be measured before the error of its metrics can be estimated from the variation within it.

The error within a run comes from the spread of up to 16 blocks (`batch_means`). A block has to last as long as a
request stays, or neighbours share most of their requests and vary together; it has to contain requests enough for two
slices, and ten ticks, or its rates are those of single ticks and waves.
"""

from __future__ import annotations

import numpy as np

from servetop.analysis.comparison.slices import MIN_PER_SLICE
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.statistics.batch_means import BATCHES, SERIES
from servetop.core.tick import TICK_SECONDS

_BLOCKS = max(BATCHES)
_TICKS_PER_BLOCK = 10
_REQUESTS_PER_BLOCK = max(SERIES) // _BLOCKS * MIN_PER_SLICE


def needed_seconds(sample: StageSample) -> float:
    """Return the shortest window in which the variation within a run can be judged; 40 s for short requests."""
    chosen = sample.window
    count, ok = sample.due[chosen].size, sample.ok[chosen]
    stays = (sample.done_at[chosen] - sample.sent[chosen])[ok]
    stay = float(np.nanmean(stays)) if stays.size else 0.0
    for_requests = _REQUESTS_PER_BLOCK * sample.seconds / max(count, 1)
    return _BLOCKS * max(_TICKS_PER_BLOCK * TICK_SECONDS, stay, for_requests)
