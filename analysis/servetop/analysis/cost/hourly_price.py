"""The price per hour of everything that serves, from what the user gave and the recording knows."""

from __future__ import annotations

import contextlib

from servetop.core.config import RunConfig
from servetop.core.config_values.price import HourlyPrice, Prices
from servetop.core.errors import UsageError

MILLION = 1e6
SECONDS_PER_HOUR = 3600.0


def recorded_prices(config: RunConfig) -> Prices | None:
    """Return the prices of a recorded configuration; None without any, or for those that this version cannot read."""
    with contextlib.suppress(UsageError):
        return Prices.parse(config.prices)
    return None


def hourly_cost(price: HourlyPrice, gpus: int | None) -> float | None:
    """Return the price of everything that serves; None for a price per GPU if their number is unknown."""
    if not price.each_gpu:
        return price.amount
    return price.amount * gpus if gpus else None
