"""Costs in the text summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.cost.costs import ServedRates, cost_summary
from servetop.analysis.summary.cost_summary import CostSummary
from servetop.cli.report.cost_table import cost_table
from servetop.cli.tables import out_tables
from servetop.core.config_values.price import Prices
from servetop.reports.summary.cost_texts import cost_rows
from tests.cli.summaries import NO_STEADY, measured, stage

SERVED = ServedRates(requests=2.0, prompt_tokens=1000.0, output_tokens=500.0, cached_share=0.4, tokens_error=0.1)


def cost(*texts: str, served: ServedRates = SERVED) -> CostSummary:
    prices = Prices.parse(texts)
    assert prices is not None
    return cost_summary(prices, served, gpus=None)


def test_the_split_states_its_weights_and_that_they_are_assumed() -> None:
    rows = dict(cost_rows(cost("$3.6/h")))
    assert rows["Cost per million tokens at $3.6/h"] == "$0.667"
    assert rows["  input / cached / output"] == "$0.379 / $0.0379 / $1.52 (at 1 : 0.1 : 4, assumed)"
    assert rows["Cost per thousand requests"] == "$0.500"


def test_break_even_with_token_prices_and_with_another_server() -> None:
    assert dict(cost_rows(cost("3.6/h", "1:0.5:2/Mtok")))["Break-even with 1:0.5:2/Mtok"] == (
        "from 1.11 req/s, 833 tok/s"
    )
    assert dict(cost_rows(cost("2/h", "3/h")))["Break-even with 3/h"] == "if it serves 3.00 req/s, 2,250 tok/s"


def test_an_unknown_cost_gives_the_reason_in_its_place() -> None:
    assert list(cost_rows(cost("2/gpu/h"))) == [
        ("Cost at 2/gpu/h", "– (no GPU is recorded: give the price of all that serves, as in 2.5/h)")
    ]


def test_without_a_price_there_are_no_rows_and_no_table() -> None:
    assert list(cost_rows(None)) == []
    assert cost_table([stage("8 req/s")]) is None


def test_each_stage_has_its_cost_with_the_interval_of_its_steady_state(capsys: pytest.CaptureFixture[str]) -> None:
    steady = replace(NO_STEADY, start=1.0, end=9.0, measured=replace(measured(), cost=cost("3.6 EUR/h")))
    whole = replace(measured(), cost=cost("3.6 EUR/h", served=replace(SERVED, tokens_error=float("inf"))))
    table = cost_table(
        [replace(stage("4 req/s", steady=steady), measured=whole), replace(stage("8 req/s"), measured=whole)]
    )
    assert table is not None
    out_tables(table)
    out = capsys.readouterr().out
    assert "Costs in EUR at 3.6 EUR/h" in out
    first, second = (next(line for line in out.splitlines() if line.startswith(name)) for name in ("4 ", "8 "))
    assert "0.667 [0.606, 0.741]" in first
    assert "[" not in second
