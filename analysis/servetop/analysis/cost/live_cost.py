"""What the tokens of the sliding window cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.cost.hourly_price import MILLION, SECONDS_PER_HOUR, hourly_cost
from servetop.analysis.live_stats import Rates
from servetop.core.config_values.price import HourlyPrice
from servetop.core.events import GpuSample


def cost_per_million_tokens(price: HourlyPrice, rates: Rates, gpus: Sequence[GpuSample]) -> float:
    """Return the cost of a million input and output tokens at the rates of a window; NaN if unknown or none flow.

    `gpus` are the newest samples; those count on which the engine holds memory, or all if that is unknown.
    """
    own = [gpu for gpu in gpus if gpu.engine_memory]
    per_hour = hourly_cost(price, len(own or gpus))
    tokens = rates.prompt_tokens + rates.output_tokens
    if per_hour is None or not tokens > 0:
        return math.nan
    return per_hour / SECONDS_PER_HOUR / tokens * MILLION
