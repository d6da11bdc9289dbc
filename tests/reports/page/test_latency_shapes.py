"""Distribution curves pass through the summary's percentiles, and a heat map counts every request once."""

from __future__ import annotations

from typing import Any

import numpy as np

from servetop.analysis.summary.request_metrics import request_summary
from servetop.reports.page.latency_shapes import SHARES, distribution_curves, heat_maps
from servetop.reports.page.packed_columns import unpacked
from tests.reports.page.columns import request_columns

REQUESTS = request_columns(1_000)


def test_a_curve_has_the_percentiles_of_the_summary() -> None:
    found: Any = distribution_curves(REQUESTS)
    summary = request_summary(REQUESTS, goodput={})
    np.testing.assert_allclose(unpacked(found["shares"]), SHARES, rtol=1e-6)
    for metric, column in found["curves"].items():
        for percentile in (50, 99):
            expected = summary.latency(metric, f"p{percentile}")
            assert expected is not None
            place = int(np.flatnonzero(np.isclose(SHARES, percentile))[0])
            np.testing.assert_allclose(unpacked(column)[place] * 1e3, expected, rtol=1e-6)


def test_a_heat_map_counts_each_successful_request_once() -> None:
    found: Any = heat_maps(REQUESTS)
    assert unpacked(found["ttft"]["counts"]).sum() == 800
    times, heights = unpacked(found["ttft"]["times"]), unpacked(found["ttft"]["heights"])
    assert unpacked(found["ttft"]["counts"]).size == (times.size - 1) * (heights.size - 1)
    assert times[0] <= 0 < 10 <= times[-1]


def test_a_run_without_successful_requests_has_no_shapes() -> None:
    none = request_columns(0)
    assert heat_maps(none) == {}
    found: Any = distribution_curves(none)
    assert set(found["curves"]) == {"itl"}
