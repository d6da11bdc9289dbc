"""A server is read less often if each of its last readings took long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from servetop.engines.metrics.scrape_period import scrape_period


@pytest.mark.parametrize(
    ("times", "period"),
    [
        ([0.0050] * 5, 1.0),
        ([0.0051] * 5, 1.25),
        ([0.0070] * 5, 1.5),
        ([0.0080] * 5, 1.75),
        ([2.0] * 5, 1.75),
        ([2.0, 2.0, 0.0062, 2.0, 2.0], 1.25),
        ([2.0] * 4, 1.0),
        ([], 1.0),
    ],
)
def test_the_shortest_reading_takes_half_a_percent_of_the_period(times: Sequence[float], period: float) -> None:
    assert scrape_period(times, shortest=1.0) == period


def test_an_engine_that_asks_for_fewer_readings_keeps_its_own_period() -> None:
    assert scrape_period([0.0080] * 5, shortest=5.0) == 5.0
