"""A chart of loads: points with intervals, the allowed share, the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.drawing.load_chart import LoadAxes, LoadPoint, LoadScale, draw_loads, legend
from servetop.tui.drawing.text_runs import row_width

KEPT = LoadPoint(load=4.0, figure=0.0, low=0.0, high=0.02, verdict="kept")
MISSED = LoadPoint(load=8.0, figure=0.5, low=0.3, high=0.7, verdict="missed")
AXES = LoadAxes(allowed=0.1, scale=LoadScale.of([4.0, 8.0]), answer=(5.0, 6.0), now=6.0, label="{:g}".format)


def _text(points: list[LoadPoint], axes: LoadAxes = AXES, *, width: int = 46, height: int = 11) -> list[str]:
    return ["".join(text for text, _ in row) for row in draw_loads(points, axes, width=width, height=height)]


def test_a_kept_load_is_at_the_bottom_and_a_missed_one_above_the_allowed_share() -> None:
    rows = _text([KEPT, MISSED])
    allowed = next(y for y, row in enumerate(rows) if "╌" in row)
    assert rows[allowed].lstrip().startswith("10 %┤")
    assert "●" in rows[8], "no sample missed: the lowest row"
    assert next(y for y, row in enumerate(rows) if "✗" in row) < allowed


def test_the_interval_of_a_load_has_a_bar() -> None:
    rows = _text([MISSED])
    column = next(row.index("✗") for row in rows if "✗" in row)
    bars = [y for y, row in enumerate(rows) if row[column] in "│✗"]
    assert bars == list(range(bars[0], bars[-1] + 1))
    assert len(bars) > 1


def test_the_answer_and_the_load_that_is_kept_now_are_on_the_axis() -> None:
    axis = _text([KEPT])[9]
    assert "━" in axis
    assert axis.count("◆") == 1
    assert "◆" not in _text([KEPT], LoadAxes(allowed=0.1, scale=AXES.scale, label=str))[9]


def test_loads_over_a_decade_have_a_logarithmic_axis() -> None:
    wide, near = LoadScale.of([1.0, 26.0]), LoadScale.of([10.0, 14.0])
    assert (wide.ticks, wide.logarithmic) == ((1.0, 2.0, 5.0, 10.0, 20.0, 50.0), True)
    assert not near.logarithmic
    assert near.ticks == (10.0, 11.0, 12.0, 13.0, 14.0)


@pytest.mark.parametrize("load", [0.1, 1.0, 997.0])
def test_one_load_has_an_axis(load: float) -> None:
    scale = LoadScale.of([load])
    assert scale.ticks[0] <= load <= scale.ticks[-1]
    assert 0 <= scale.place(load) <= 1


@given(st.lists(st.floats(0.05, 2000.0), min_size=1, max_size=8))
def test_every_load_is_within_its_axis(loads: list[float]) -> None:
    scale = LoadScale.of(loads)
    assert all(scale.ticks[0] <= each * (1 + 1e-9) and each <= scale.ticks[-1] * (1 + 1e-9) for each in loads)
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert len(scale.ticks) <= 20


def test_a_mean_has_its_limit_in_the_middle_and_larger_means_at_the_top() -> None:
    axes = LoadAxes(allowed=0.2, scale=LoadScale.of([4.0, 8.0]), label="{:g}".format, mean=True)
    kept = LoadPoint(load=4.0, figure=0.05, low=0.04, high=0.06, verdict="kept")
    far = LoadPoint(load=8.0, figure=90.0, low=80.0, high=float("inf"), verdict="missed")
    rows = _text([kept, far], axes)
    assert [row[:6].strip() for row in (rows[0], rows[4], rows[8])] == ["2s┤", "200ms┤", "20ms┤"]
    assert "✗" in rows[0]
    assert "●" in rows[6]


@given(
    st.lists(st.tuples(st.floats(0.1, 1000.0), st.floats(0.0, 1.0)), min_size=1, max_size=6),
    st.sampled_from([0.5, 0.1, 0.01, 0.001]),
    st.tuples(st.integers(10, 120), st.integers(1, 40)),
    st.booleans(),
)
def test_a_chart_fills_its_area(
    loads: list[tuple[float, float]], allowed: float, size: tuple[int, int], mean: bool
) -> None:
    width, height = size
    points = [LoadPoint(load=each, figure=share, low=share / 2, high=share, verdict="open") for each, share in loads]
    axes = LoadAxes(allowed=allowed, scale=LoadScale.of([each for each, _ in loads]), label="{:.3g}".format, mean=mean)
    rows = draw_loads(points, axes, width=width, height=height)
    assert len(rows) == height
    assert all(row_width(row) <= width for row in rows)


def test_the_legend_has_as_many_symbols_as_fit() -> None:
    assert "".join(text for text, _ in legend(width=60)) == "● kept ✗ missed ○ open ◆ now"
    assert "".join(text for text, _ in legend(width=17)) == "● kept ✗ missed"
