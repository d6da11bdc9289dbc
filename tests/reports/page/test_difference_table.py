"""Intervals are drawn on one axis: where they are known, within its ends, and with an arrow beyond them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from servetop.analysis.comparison.compared_metrics import Scale, metric_named
from servetop.analysis.comparison.measured_difference import MeasuredDifference, measured_difference
from servetop.analysis.comparison.verdicts import Verdict
from servetop.reports.page.difference_table import axis_end, interval_bar

METRIC = metric_named("mean_ttft_ms")


def difference(low: float | None, value: float | None, high: float | None, **fields: object) -> MeasuredDifference:
    assert METRIC is not None
    given = replace(measured_difference(METRIC, None, margin=0.02), a=100.0, low=low, difference=value, high=high)
    return replace(given, **fields)  # type: ignore[arg-type]


def test_an_interval_is_drawn_where_it_is_on_the_axis() -> None:
    bar = interval_bar(difference(0.05, 0.1, 0.15, verdict=Verdict.WORSE), 0.2)
    assert bar is not None
    assert '<line x1="137.5" x2="192.5"' in bar
    assert '<circle cx="165.0"' in bar
    assert '<rect x="99.0" y="0" width="22.0"' in bar
    assert 'class="worse"' in bar
    assert 'aria-label="+10 % [+5.0, +15]"' in bar
    assert "<path" not in bar


@pytest.mark.parametrize(
    ("low", "high", "arrows"), [(-0.5, 0.1, ["M8"]), (-0.1, 0.5, ["M212"]), (-0.1, None, ["M212"]), (-0.1, 0.1, [])]
)
def test_an_interval_beyond_the_axis_ends_in_an_arrow(low: float, high: float | None, arrows: list[str]) -> None:
    bar = interval_bar(difference(low, 0.0, high), 0.2)
    assert bar is not None
    assert re.findall(r'<path d="(M[0-9]+)', bar) == arrows


@pytest.mark.parametrize(("low", "value", "high"), [(None, 0.1, None), (-1.0, 0.1, None), (None, None, None)])
def test_an_unknown_interval_is_not_drawn(low: float | None, value: float | None, high: float | None) -> None:
    assert interval_bar(difference(low, value, high), 0.2) is None


def test_a_difference_in_a_unit_is_drawn_relative_to_a_and_points_as_they_are() -> None:
    absolute = difference(5.0, 10.0, 15.0, scale=Scale.ABSOLUTE, margin=2.0)
    assert interval_bar(absolute, 0.2) is not None
    assert '<circle cx="165.0"' in str(interval_bar(absolute, 0.2))
    points = difference(0.05, 0.1, 0.15, scale=Scale.ABSOLUTE, unit="share")
    assert '<circle cx="165.0"' in str(interval_bar(points, 0.2))
    assert interval_bar(replace(absolute, a=0.0), 0.2) is None


def test_the_axis_holds_most_intervals_and_is_not_stretched_by_one() -> None:
    narrow = [difference(-0.04, 0.0, 0.04)] * 3
    assert axis_end(narrow) == 0.05
    assert axis_end([*narrow, difference(-0.9, 5.0, 9.0)]) == 0.05
    assert axis_end([*narrow[:1], difference(-0.9, 0.0, 0.9)]) == 1.0
    assert axis_end([]) == 0.05
