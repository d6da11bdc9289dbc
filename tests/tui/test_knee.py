"""The knee is where a curve lies furthest below its chord."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.drawing.knee import knee


def test_the_last_load_before_a_steep_rise_of_latency_is_the_knee() -> None:
    assert knee([1, 2, 4, 8, 16], [0.05, 0.05, 0.06, 0.08, 2.0]) == 3


def test_the_knee_of_the_papers_example_is_reproduced() -> None:
    """Figure 2 of Kneedle, y = -1/x + 5 on ten points from 0 to 1, mirrored into an increasing convex curve."""
    x = [number / 9 for number in range(10)]
    y = [-1 / (value + 0.1) + 5 for value in x]
    mirrored = [y[-1] - value for value in reversed(y)]
    assert knee(x, mirrored) == 9 - 2


@pytest.mark.parametrize(
    ("loads", "latencies"),
    [
        ([], []),
        ([1, 2], [0.1, 5.0]),
        ([1, 2, 3], [0.1, 0.1, 0.1]),
        ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0]),
        ([1, 2, 3], [0.1, float("nan"), 5.0]),
        ([2, 2, 2], [0.1, 0.2, 5.0]),
    ],
    ids=["nothing", "two points", "flat", "a straight line", "unknown", "one load"],
)
def test_a_straight_or_flat_curve_has_no_knee(loads: list[float], latencies: list[float]) -> None:
    assert knee(loads, latencies) is None


@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(1e-3, 1e3)), max_size=20), st.floats(0.01, 100))
def test_the_knee_does_not_depend_on_units(points: list[tuple[float, float]], scale: float) -> None:
    points.sort()
    loads, latencies = [each[0] for each in points], [each[1] for each in points]
    found = knee(loads, latencies)
    assert found is None or 0 <= found < len(points) - 1
    again = knee(loads, [latency * scale for latency in latencies])
    if found is not None and again is not None:
        assert abs(again - found) <= 1 or latencies[again] == pytest.approx(latencies[found])
