"""The mean of a histogram of tokens, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.analysis.exported.exported_summary import exported_summary
from servetop.analysis.exported.histogram_mean import histogram_mean
from servetop.analysis.exported.metric_spec import MetricKind, MetricSpec, wanted_labels
from servetop.analysis.exported.metric_values import Periods, whole_period
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers

NAME = "vllm:inter_token_latency_seconds"
ITL = MetricSpec(group="latency", name="ITL", kind=MetricKind.QUANTILES, series=(NAME,))


def scrapes(*rows: tuple[float, float]) -> ScrapeHistory:
    """One scrape a second, with the sum and the number of observations, all from 0.01 to 0.025 s."""
    history = ScrapeHistory()
    for at, (total, count) in enumerate(rows):
        counts = {"0.01": 0.0, "0.025": count, "+Inf": count}
        values = {f"{NAME}_bucket{{le={bound}}}": each for bound, each in counts.items()} | {f"{NAME}_sum": total}
        history.extend([SeriesScrape(at=float(at), names="\n".join(values), numbers=pack_numbers(values.values()))])
    return history


def test_a_mean_is_that_of_the_observations_in_the_period_through_a_restart() -> None:
    history = scrapes((1.0, 50.0), (2.33, 150.0), (0.4, 30.0))
    (metric,) = exported_summary([ITL], history, start=0.0) or ()
    assert metric.mean == pytest.approx((1.33 + 0.4) / (100 + 30)), "the restart set both to 0"
    assert (metric.above, metric.up_to) == (0.01, 0.025), "all that is known of the quantiles"


def test_without_an_observation_or_a_sum_no_mean_is_known() -> None:
    assert histogram_mean(ITL, whole_period(scrapes((1.0, 50.0), (1.0, 50.0)), 0.0)) is None
    period = whole_period(scrapes((1.0, 50.0), (2.0, 90.0)), 0.0)
    unknown = Periods(
        columns=period.columns, increases=np.full_like(period.increases, math.nan), newest=period.newest,
        seconds=period.seconds,
    )  # fmt: skip
    assert histogram_mean(ITL, unknown) is None
    other = MetricSpec(group="latency", name="TTFT", kind=MetricKind.QUANTILES, series=("vllm:ttft_seconds",))
    assert histogram_mean(other, period) is None
    assert histogram_mean(MetricSpec(group="", name="n", kind=MetricKind.GAUGE, series=(NAME,)), period) is None


def test_the_sum_of_a_histogram_of_tokens_is_recorded() -> None:
    assert f"{NAME}_sum" in wanted_labels([ITL])
