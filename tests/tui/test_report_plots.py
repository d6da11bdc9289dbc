"""Plots of reports: no colour, an axis from zero, named curves."""

from __future__ import annotations

from servetop.tui.drawing.report_plots import curves

CURVES = {"batch 16": [(8.0, 672.0), (24.0, 1002.0)], "batch 64": [(8.0, 976.0), (24.0, 1848.0)]}


def test_the_plot_has_round_ticks_from_zero_and_a_tick_for_every_rate() -> None:
    lines = curves(CURVES, across="requests/s", up="tok/s").splitlines()
    assert [line.split("┤")[0].strip() for line in lines if "┤" in line] == ["2,000", "1,500", "1,000", "500", "0"]
    assert lines[-3].split() == ["8", "24"]
    assert lines[-2].split() == ["tok/s", "requests/s"]


def test_curves_differ_in_their_markers_not_in_colour_alone() -> None:
    drawn = curves(CURVES, across="requests/s", up="tok/s")
    assert "\x1b" not in drawn
    assert drawn.splitlines()[-1] == "● batch 16   ▲ batch 64"
    assert drawn.count("●") == drawn.count("▲") == 3  # two points and the legend


def test_the_plot_keeps_within_its_size() -> None:
    lines = curves(CURVES, across="requests/s", up="tok/s", width=40, height=10).splitlines()
    assert max(map(len, lines)) <= 40
    assert len(lines) == 11
