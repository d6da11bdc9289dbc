"""Charts as text."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.drawing.braille import ChartLine, parted, raster
from servetop.tui.drawing.charts import Axes, Bars, bar_chart, block_bars, chart, gauge
from servetop.tui.drawing.scale import peak_of, round_limit, steady_limit
from servetop.tui.drawing.text_runs import Lines, row_width

TIMES = np.arange(1.0, 11.0)
AXES = Axes(window=(0.0, 10.0), limit=10.0)


def trace(values: list[float], **visible_styles: object) -> ChartLine:
    return ChartLine(times=TIMES[: len(values)], values=np.array(values), style="sky", **visible_styles)  # type: ignore[arg-type]


def drawn(*traces: ChartLine, width: int = 10, height: int = 2) -> str:
    return Lines(raster(traces, width=width, height=height, window=(0.0, 10.0), limit=10.0)).plain


def test_a_line_at_zero_lies_on_the_bottom_and_one_at_the_limit_on_top() -> None:
    assert drawn(trace([0.0] * 10)) == "          \n" + "⣀" * 10
    assert drawn(trace([10.0] * 10)) == "⠉" * 10 + "\n          "


def test_a_gap_in_the_values_is_a_gap_in_the_line() -> None:
    values = [5.0] * 4 + [math.nan] * 2 + [5.0] * 4
    top = drawn(trace(values), height=1)
    assert " " in top[3:7]
    assert " " not in top[:3] + top[7:]


def test_an_area_fills_down_to_zero_and_a_hatched_one_half_of_the_dots() -> None:
    assert drawn(trace([10.0] * 10, area=True), height=1) == "⣿" * 10
    assert set(drawn(trace([10.0] * 10, area=True, dash="dashed"), height=1)) <= {"⡪", "⢕", "⣿"} - {"⣿"}


def test_the_last_trace_owns_the_cells_that_it_draws_in() -> None:
    below = trace([5.0] * 10)
    above = ChartLine(times=TIMES, values=np.full(10, 5.0), style="orange", dash="dotted")
    (row,) = raster([below, above], width=10, height=1, window=(0.0, 10.0), limit=10.0)
    assert [style for _, style in row[:4]] == ["orange", "sky", "orange", "sky"]


def test_a_shade_is_between_two_lines_in_cells_that_no_line_uses() -> None:
    line = trace([10.0] * 10)
    shade = ChartLine(times=TIMES, values=line.values, style="faint", down_to=np.zeros(10))
    assert drawn(shade, line, height=3).split("\n") == ["⠉" * 10, "⡐" * 10, "⠐" * 10]
    assert drawn(replace(shade, down_to=np.full(10, math.nan))).strip() == ""


def test_a_line_cuts_through_an_area_so_that_it_is_seen_without_colour() -> None:
    area, line = trace([10.0] * 10, area=True), trace([5.0] * 10, dash="fine", cuts=True)
    assert drawn(area, line, height=1) == "⣂" * 10
    assert drawn(area, replace(line, cuts=False), height=1) == "⣿" * 10


def test_nothing_is_drawn_before_the_first_value() -> None:
    late = ChartLine(times=TIMES[6:], values=np.full(4, 5.0), style="sky")
    assert drawn(late, height=1)[:5] == "     "


def test_a_chart_has_labels_marks_and_times_of_the_run_or_distances_from_now() -> None:
    axes = Axes(window=(60.0, 120.0), limit=80.0, marks=(90.0,))
    rows = Lines(chart([trace([])], axes, width=66, height=5)).plain.split("\n")
    assert rows[0].startswith("   80┤")
    assert rows[3].startswith("    0┤")
    assert rows[1][6 + 30] == "┊"
    assert rows[4].split() == ["╵1:00", "╵1:10", "╵1:20", "╵1:30", "╵1:40", "╵1:50"]
    assert rows[4][6 + 30] == "╵"
    live = Lines(chart([trace([])], replace(axes, from_now=True), width=66, height=5)).plain.split("\n")
    assert live[4].split() == ["╵−1:00", "╵−0:50", "╵−0:40", "╵−0:30", "╵−0:20", "2:00"]
    assert live[4].index("╵−0:30") == 6 + 30


def test_the_two_parts_of_a_line_meet_where_it_becomes_high() -> None:
    values = np.array([2.0] * 5 + [9.0] * 5)
    line = ChartLine(times=TIMES, values=values, style="sky", area=True)
    (row,) = raster(parted(line, values > 5, style="warn"), width=10, height=1, window=(0.0, 10.0), limit=10.0)
    assert row == [("⣤" * 5, "sky"), ("⣿" * 5, "warn")]


def test_a_value_above_the_limit_is_written_at_its_time() -> None:
    axes = replace(AXES, spike=(2.0, 120.0))
    rows = Lines(chart([trace([1.0] * 10)], axes, width=36, height=5)).plain.split("\n")
    assert rows[0][6:].startswith("     ▲ 120 ")
    late = Lines(chart([trace([1.0] * 10)], replace(axes, spike=(10.0, 120.0)), width=36, height=5)).plain.split("\n")
    assert late[0].endswith(" 120 ▲")


def test_bars_in_alert_have_the_style_of_an_alert_at_their_time_only() -> None:
    bars = Bars(times=TIMES, values=np.full(10, 10.0), style="sky", alert=TIMES > 8)
    assert block_bars(bars, AXES, width=10) == [[("█" * 8, "sky"), ("██", "vermilion")]]


@given(
    st.lists(st.floats(0, 1e6) | st.just(math.nan), max_size=40),
    st.integers(12, 60),
    st.integers(1, 12),
)
def test_a_chart_always_has_exactly_its_size(values: list[float], width: int, height: int) -> None:
    series = ChartLine(
        times=np.arange(len(values), dtype=np.float64) * 0.25, values=np.array(values, dtype=np.float64), style="sky"
    )
    axes = Axes(window=(0.0, 10.0), limit=round_limit(peak_of(series.values)), marks=(3.0, 7.0))
    bars = Bars(times=series.times, values=series.values, style="sky")
    for rows in (chart([series], axes, width=width, height=height), bar_chart(bars, axes, width=width, height=height)):
        assert len(rows) == height
        assert {row_width(row) for row in rows} == {width}


def test_bars_are_means_over_the_time_of_a_cell() -> None:
    bars = Bars(times=TIMES, values=np.array([0, 0, 5, 5, 10, 10, math.nan, math.nan, 0.01, 0.01]), style="sky")
    assert Lines(block_bars(bars, AXES, width=5)).plain == " ▄█ ▁"


def test_a_gauge_is_exact_to_an_eighth_of_a_cell() -> None:
    assert Lines([gauge(0.5, width=4, style="sky")]).plain == "██··"
    assert Lines([gauge(0.53, width=4, style="sky")]).plain == "██▏·"
    assert Lines([gauge(math.nan, width=4, style="sky")]).plain == "····"
    assert Lines([gauge(7.0, width=4, style="sky")]).plain == "████"


@pytest.mark.parametrize(("peak", "limit"), [(0, 1), (0.9, 1), (1.1, 1.2), (58.2, 60), (61, 80), (2228, 2500)])
def test_limits_are_round(peak: float, limit: float) -> None:
    assert round_limit(peak) == pytest.approx(limit)


def test_a_limit_grows_at_once_and_shrinks_only_by_a_lot() -> None:
    assert steady_limit(80, 81) == 100
    assert steady_limit(80, 40) == 80
    assert steady_limit(80, 30) == 30
    assert steady_limit(80, 0) == 80


@given(st.floats(0, 1e12, allow_nan=False), st.floats(0, 1e12, allow_nan=False))
def test_nothing_is_ever_above_its_limit(previous: float, peak: float) -> None:
    assert steady_limit(previous, peak) >= peak * (1 - 1e-9)
