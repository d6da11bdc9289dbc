"""Costs from a price and what was served."""

from __future__ import annotations

import dataclasses
import math

import pytest

from servetop.analysis.cost.costs import ASSUMED_WEIGHTS, ServedRates, cost_summary
from servetop.core.config_values.price import Prices

SERVED = ServedRates(requests=2.0, prompt_tokens=1000.0, output_tokens=500.0, cached_share=0.4)
"""Per second: 600 input tokens, 400 cached ones, 500 output tokens."""
STEADY = dataclasses.replace(SERVED, requests_error=0.1, tokens_error=0.2, weighted_error=0.5)


def prices(*texts: str) -> Prices:
    found = Prices.parse(texts)
    assert found is not None
    return found


def test_requests_and_tokens_share_the_price_of_an_hour() -> None:
    cost = cost_summary(prices("$3.6/h"), SERVED, gpus=None)
    assert cost.per_hour == 3.6
    assert cost.per_request == pytest.approx(0.001 / 2)
    assert cost.per_million_tokens == pytest.approx(0.001 / 1500 * 1e6)
    assert (cost.currency, cost.reason) == ("$", None)


@pytest.mark.parametrize("texts", [("3.6/h",), ("3.6/h", "3:0.3:15/Mtok"), ("3.6/h", "1/Mtok")])
def test_the_costs_of_all_tokens_add_up_to_the_price(texts: tuple[str, ...]) -> None:
    cost = cost_summary(prices(*texts), SERVED, gpus=None)
    kinds = (cost.per_million_input_tokens, cost.per_million_cached_tokens, cost.per_million_output_tokens)
    per_second = sum((each or math.nan) * served / 1e6 for each, served in zip(kinds, (600, 400, 500), strict=True))
    assert per_second * 3600 == pytest.approx(3.6)


def test_kinds_of_tokens_cost_in_proportion_to_the_price_list() -> None:
    cost = cost_summary(prices("3.6/h", "3:0.3:15/Mtok"), SERVED, gpus=None)
    assert cost.per_million_output_tokens == pytest.approx(5 * (cost.per_million_input_tokens or 0))
    assert cost.per_million_cached_tokens == pytest.approx(0.1 * (cost.per_million_input_tokens or 0))
    assert (cost.weights, cost.weights_assumed) == ((3.0, 0.3, 15.0), False)


def test_without_a_price_list_the_weights_are_said_to_be_assumed() -> None:
    cost = cost_summary(prices("3.6/h"), SERVED, gpus=None)
    assert (cost.weights, cost.weights_assumed) == (ASSUMED_WEIGHTS, True)


def test_unknown_hits_make_every_prompt_token_an_input_token() -> None:
    unknown = dataclasses.replace(SERVED, cached_share=None)
    cost = cost_summary(prices("3.6/h"), unknown, gpus=None)
    assert cost.per_million_cached_tokens is None
    assert cost.per_million_input_tokens == pytest.approx(0.001 / (1000 + 4 * 500) * 1e6)


def test_an_interval_of_the_rate_becomes_one_of_the_cost() -> None:
    cost = cost_summary(prices("3.6/h"), STEADY, gpus=None)
    assert cost.per_request_interval == pytest.approx((0.0005 / 1.1, 0.0005 / 0.9))
    assert cost.per_million_tokens_interval == pytest.approx((2 / 3 / 1.2, 2 / 3 / 0.8))
    output = cost.per_million_output_tokens or math.nan
    assert cost.per_million_output_tokens_interval == pytest.approx((output / 1.5, output / 0.5))


def test_without_a_steady_load_costs_have_no_interval() -> None:
    cost = cost_summary(prices("3.6/h"), SERVED, gpus=None)
    assert cost.per_request_interval is cost.per_million_tokens_interval is None
    assert cost.per_million_output_tokens_interval is None


def test_a_price_per_gpu_is_multiplied_by_the_gpus_of_the_engine() -> None:
    assert cost_summary(prices("2/gpu/h"), SERVED, gpus=4).per_hour == 8.0


def test_a_price_per_gpu_without_a_recorded_gpu_says_what_to_give() -> None:
    cost = cost_summary(prices("2/gpu/h"), SERVED, gpus=None)
    assert cost.per_hour is cost.per_request is cost.per_million_tokens is cost.per_million_output_tokens is None
    assert cost.reason == "no GPU is recorded: give the price of all that serves, as in 2.5/h"


def test_nothing_served_costs_nothing_known() -> None:
    idle = ServedRates(requests=0.0, prompt_tokens=0.0, output_tokens=0.0, cached_share=None)
    cost = cost_summary(prices("2/h", "1/Mtok"), idle, gpus=None)
    assert cost.per_million_tokens is cost.per_request is None
    assert cost.reason == "no request was completed"
    assert cost.break_even is not None
    assert cost.break_even.request_throughput is None


def test_the_break_even_with_token_prices_is_the_load_whose_tokens_cost_as_much() -> None:
    cost = cost_summary(prices("3.6/h", "1:0.5:2/Mtok"), SERVED, gpus=None)
    found = cost.break_even
    assert found is not None
    worth = (600 * 1 + 400 * 0.5 + 500 * 2) / 1e6 * 3600
    assert found.cost_of_tokens == pytest.approx(worth)
    assert found.request_throughput == pytest.approx(2.0 * 3.6 / worth)
    assert found.total_token_throughput == pytest.approx(1500 * 3.6 / worth)


def test_the_break_even_with_another_server_is_what_it_has_to_serve() -> None:
    found = cost_summary(prices("2/h", "3/h"), SERVED, gpus=None).break_even
    assert found is not None
    assert (found.kind, found.cost_of_tokens) == ("server", None)
    assert found.request_throughput == pytest.approx(3.0)
    assert found.total_token_throughput == pytest.approx(2250)
