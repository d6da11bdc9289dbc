"""What tokens cost at the rates of the sliding window."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.cost.live_cost import cost_per_million_tokens
from servetop.analysis.live_stats import Rates
from servetop.core.config_values.price import HourlyPrice
from servetop.core.events import GpuSample

RATES = Rates(prompt_tokens=900.0, output_tokens=100.0)
GPUS = [GpuSample(at=1.0, index=index, name="H200", engine_memory=index % 2) for index in range(4)]


def price(*, each_gpu: bool = False) -> HourlyPrice:
    return HourlyPrice(text="3.6/h", amount=3.6, each_gpu=each_gpu)


def test_all_tokens_of_the_window_share_the_price() -> None:
    assert cost_per_million_tokens(price(), RATES, ()) == pytest.approx(0.001 / 1000 * 1e6)


def test_a_price_per_gpu_counts_those_of_the_engine() -> None:
    assert cost_per_million_tokens(price(each_gpu=True), RATES, GPUS) == pytest.approx(2.0)


@pytest.mark.parametrize("rates", [Rates(), Rates(prompt_tokens=0.0, output_tokens=0.0)])
def test_without_tokens_the_cost_is_unknown(rates: Rates) -> None:
    assert math.isnan(cost_per_million_tokens(price(), rates, ()))


def test_a_price_per_gpu_without_gpus_is_unknown() -> None:
    assert math.isnan(cost_per_million_tokens(price(each_gpu=True), RATES, ()))
