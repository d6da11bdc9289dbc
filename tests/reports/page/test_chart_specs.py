"""The lines of a chart differ without colour, on the page, in print and in the picture."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.reports.page.chart_specs import CHARTS, ChartSpec, PlottedLine, dash_numbers
from servetop.reports.page.watched_columns import SERVER_CHARTS


def dashes(chart: ChartSpec) -> dict[str, tuple[int, ...]]:
    data: Any = chart.as_data()
    return {line["label"]: tuple(line["dash"]) for line in data["lines"]}


@pytest.mark.parametrize("chart", [*CHARTS, *SERVER_CHARTS], ids=lambda chart: chart.name)
def test_lines_of_a_chart_differ_by_their_dashes(chart: ChartSpec) -> None:
    assert len(set(dashes(chart).values())) == len(chart.lines)


def test_what_was_sent_is_solid_and_what_was_completed_is_not() -> None:
    load = dashes(CHARTS[0])
    assert list(load) == ["target", "sent", "completed", "failed"]
    assert load["sent"] == ()
    assert all(load[label] for label in ("target", "completed", "failed"))


def test_quieter_lines_are_dashed_and_others_begin_solid() -> None:
    lines = [PlottedLine(label=str(place), column="", dashed=place in (0, 3)) for place in range(5)]
    assert list(dash_numbers(lines)) == [1, 0, 2, 3, 3]
