"""A line chart has round ticks, gaps where values are unknown, and no markup from outside."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest

from servetop.reports.page.line_chart import MOST_POINTS, RunTime, SvgLine, line_chart, thinned, ticks

SVG = "{http://www.w3.org/2000/svg}"


def paths(*lines: SvgLine) -> list[str]:
    drawn = ElementTree.fromstring(line_chart(lines, x_unit="s", y_unit="ms"))
    return [each.attrib["d"] for each in drawn.iter(f"{SVG}path") if each.attrib.get("stroke-width") == "1.5"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 25, 50, 75, 100]),
        (0, 7, [0, 2, 4, 6]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (0, 0.004, [0, 0.001, 0.002, 0.003, 0.004]),
        (5, 5, [5]),
        (math.nan, 1, [math.nan]),
    ],
)
def test_ticks_are_round_numbers_within_the_axis(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, most=5) == pytest.approx(expected, nan_ok=True)


def test_a_line_is_drawn_from_left_to_right_and_upwards() -> None:
    (path,) = paths(SvgLine(name="a", x=[0, 1, 2], y=[0, 1, 2]))
    points = [tuple(map(float, each.split())) for each in path[1:].split("L")]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        (0.08, ["0.01", "0.02", "0.05", "0.1"]),
        (0.8, ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]),
        (8.0, ["0.01", "0.1", "1", "10"]),
    ],
)
def test_a_logarithmic_axis_has_more_than_its_powers_of_ten_if_they_are_few(
    largest: float, expected: list[str]
) -> None:
    line = SvgLine(name="a", x=[100, 200], y=[0.015, largest])
    drawn = ElementTree.fromstring(line_chart([line], x_unit="s", y_unit="s", logarithmic=True))
    levels = [each.text for each in drawn.iter(f"{SVG}text") if each.attrib["text-anchor"] == "end"]
    assert [each for each in levels if each != "s"] == expected


def test_the_time_of_a_run_is_a_clock_and_its_episodes_are_shaded_once() -> None:
    line = SvgLine(name="a", x=[0, 100, 200], y=[0, 12_000, 40_000])
    time = RunTime(shaded=[(20, 60), (50, 90), (150, 500)])
    drawn = ElementTree.fromstring(line_chart([line], x_unit=time, y_unit="tok/s"))
    written = {side: [each.text for each in drawn.iter(f"{SVG}text") if each.attrib["text-anchor"] == side]
               for side in ("middle", "end")}  # fmt: skip
    assert written["middle"] == ["0:00", "0:30", "1:00", "1:30", "2:00", "2:30", "3:00"]
    assert written["end"] == ["0", "10,000", "20,000", "30,000", "40,000"]
    shades = [each.attrib for each in drawn.iter(f"{SVG}rect")]
    per_second = (560 - 52 - 12) / 200
    assert [float(each["width"]) for each in shades] == pytest.approx([70 * per_second, 50 * per_second], abs=0.1)


def test_a_line_has_the_dashes_that_it_asks_for() -> None:
    lines = [SvgLine(name=str(dash), x=[0, 1], y=[0, 1], dash=dash) for dash in range(4)]
    drawn = ElementTree.fromstring(line_chart(lines, x_unit="s", y_unit=""))
    strokes = [each for each in drawn.iter(f"{SVG}path") if each.attrib.get("stroke-width") == "1.5"]
    assert len({each.attrib.get("stroke-dasharray") for each in strokes}) == 4


def test_an_unknown_value_is_a_gap() -> None:
    assert len(paths(SvgLine(name="a", x=[0, 1, 2, 3], y=[1, 2, math.nan, 4]))) == 2
    assert paths(SvgLine(name="a", x=[0, 1], y=[math.nan, math.inf])) == []


def test_a_constant_and_a_single_value_are_drawn() -> None:
    assert len(paths(SvgLine(name="a", x=[3], y=[7]), SvgLine(name="b", x=[3, 3], y=[0, 0]))) == 2


def test_a_long_line_keeps_its_extremes() -> None:
    x = [float(each) for each in range(100_000)]
    y = [math.sin(each) for each in x]
    y[54_321], y[54_322] = 50.0, -50.0
    kept = thinned(x, y)
    assert len(kept) <= MOST_POINTS
    assert {(54_321.0, 50.0), (54_322.0, -50.0)} <= set(kept)
    assert [at for at, _ in kept] == sorted(at for at, _ in kept)


def test_names_and_units_are_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    text = line_chart([SvgLine(name=evil, x=[0], y=[1])], x_unit=evil, y_unit=evil)
    assert "<script" not in text
    drawn = ElementTree.fromstring(text)
    assert drawn.attrib["aria-label"] == evil


def test_a_logarithmic_axis_has_decades_and_leaves_out_what_is_not_positive() -> None:
    line = SvgLine(name="a", x=[0, 1, 2, 3], y=[0.02, 0.2, 0.0, 2.0])
    drawn = ElementTree.fromstring(line_chart([line], x_unit="s", y_unit="s", logarithmic=True))
    axis = [each.text for each in drawn.iter(f"{SVG}text") if each.attrib["text-anchor"] == "end"]
    assert axis[:-1] == ["0.01", "0.1", "1", "10"]
    assert len([each for each in drawn.iter(f"{SVG}path") if each.attrib.get("stroke-width") == "1.5"]) == 2


def test_a_logarithmic_axis_without_a_positive_value_is_drawn() -> None:
    line_chart([SvgLine(name="a", x=[0, 1], y=[0.0, math.nan])], x_unit="s", y_unit="s", logarithmic=True)
