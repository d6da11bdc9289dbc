"""How far the predictions of a sweep are from its cells."""

from __future__ import annotations

import math

import pytest

from servetop.tui.state.sweep_cells import Cell, Load
from servetop.tui.state.sweep_predictions import deviations

PLACE = (8, Load(4.0))


@pytest.mark.parametrize(("seconds", "expected"), [(0.4, []), (2.0, [0.1]), (math.inf, [0.1])])
def test_a_rate_of_few_ticks_is_not_compared(seconds: float, expected: list[float]) -> None:
    cell = Cell(output_rate=100.0, preempted=False, unsteady=False, running_now=False, seconds=seconds, histograms={})
    assert deviations({PLACE: cell}, {PLACE: 110.0}) == pytest.approx(expected)
