"""How fast a search rises, by its loop and its budget."""

from __future__ import annotations

import pytest

from servetop.run.search.search_evidence import SearchLimits
from servetop.run.search.search_pace import STEP, SearchPace


def pace(budget: float, *, concurrency: bool) -> SearchPace:
    return SearchPace.of(SearchLimits(low=1.0, high=1000.0, budget=budget, concurrency=concurrency))


def test_a_closed_loop_rises_by_larger_steps_while_few_requests_are_in_flight() -> None:
    closed, opened = pace(1200.0, concurrency=True), pace(1200.0, concurrency=False)
    assert closed.step(1.0) == closed.step(6.0) > STEP
    assert closed.step(16.0) == opened.step(1.0) == STEP
    assert (closed.chunk, closed.first) == (opened.chunk, opened.first)


@pytest.mark.parametrize(("budget", "part"), [(320.0, 1.0), (160.0, 0.5), (80.0, 0.25), (10.0, 0.25)])
def test_a_small_budget_shortens_the_loads_of_a_closed_loop(budget: float, part: float) -> None:
    short, long = pace(budget, concurrency=True), pace(1200.0, concurrency=True)
    assert (short.chunk / long.chunk, short.first / long.first) == (part, part)
    assert pace(budget, concurrency=False) == pace(1200.0, concurrency=False)
