"""Gives the stages of a run the price of the server that ran them."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.cost.hourly_price import hourly_cost
from servetop.core.config_values.price import HourlyPrice


def with_price(arm: ArmRun, price: HourlyPrice) -> ArmRun:
    """Return the run with its cost per hour; unknown for a price per GPU if no GPU is recorded."""
    per_hour = hourly_cost(price, arm.gpus)
    return replace(arm, stages=[replace(stage, price_per_hour=per_hour) for stage in arm.stages])
