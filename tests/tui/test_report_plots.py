"""Plots of reports: no colour, an axis from zero, named curves."""

from __future__ import annotations

import numpy as np

from servetop.core.text import formats
from servetop.tui.drawing.report_plots import FRAME_WIDTH, ValueAxis, curves, lines_over_time

TOKENS = ValueAxis(name="tok/s")
CURVES = {"batch 16": [(8.0, 672.0), (24.0, 1002.0)], "batch 64": [(8.0, 976.0), (24.0, 1848.0)]}


def test_the_plot_has_round_ticks_from_zero_and_a_tick_for_every_rate() -> None:
    lines = curves(CURVES, across="requests/s", up=TOKENS).splitlines()
    assert [line.split("┤")[0].strip() for line in lines if "┤" in line] == ["2,000", "1,500", "1,000", "500", "0"]
    assert lines[-3].split() == ["8", "24"]
    assert lines[-2].split() == ["tok/s", "requests/s"]


def test_curves_differ_in_their_markers_not_in_colour_alone() -> None:
    drawn = curves(CURVES, across="requests/s", up=TOKENS)
    assert "\x1b" not in drawn
    assert drawn.splitlines()[-1] == "● batch 16   ▲ batch 64"
    assert drawn.count("●") == drawn.count("▲") == 3  # two points and the legend


def test_the_plot_keeps_within_its_size() -> None:
    lines = curves(CURVES, across="requests/s", up=TOKENS, width=40, height=10).splitlines()
    assert max(map(len, lines)) <= 40
    assert len(lines) == 11


def test_points_that_are_not_joined_have_no_lines() -> None:
    drawn = curves(CURVES, across="requests/s", up=TOKENS, joined=False)
    assert set(drawn) & set("▄▀▞▚▗▖▘▝") == set()
    assert drawn.count("●") == 3


def test_a_logarithmic_axis_has_room_for_all_values() -> None:
    up = ValueAxis(logarithmic=True, label=formats.axis_seconds)
    lines = curves({"p99": [(1.0, 0.02), (2.0, 7.0)]}, across="req/s", up=up).splitlines()
    labels = [line.split("┤")[0].strip() for line in lines if "┤" in line]
    assert (labels[0], labels[-1]) == ("10s", "10ms")


def test_lines_over_time_are_in_the_columns_of_their_times_with_gaps_where_nothing_is_known() -> None:
    at = np.arange(20.0) + 0.5
    flat, spike = np.full(20, 1.0), np.zeros(20)
    flat[5:10], spike[15] = np.nan, 8.0
    drawn = lines_over_time([flat, spike], at=at, window=(0.5, 19.5), up=ValueAxis(), width=20 + FRAME_WIDTH, height=8)
    assert drawn.splitlines() == [
        "     ┌────────────────────┐",
        "    8┤               ×    │",
        "    6┤               ×    │",
        "    4┤              ××    │",
        "    2┤•••••     ••••×•×•••│",
        "    0┤××××××××××××××× ××××│",
        "     └──────────┬─────────┘",
        "               0:10",
    ]


def test_a_plot_is_as_wide_as_asked_for_on_a_narrow_terminal_too() -> None:
    at = np.arange(20.0)
    drawn = lines_over_time([at], at=at, window=(0.0, 19.0), up=ValueAxis(), width=300)
    assert len(drawn.splitlines()[0]) == 300
