"""The shared time axis, which grows with the load."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import StageChange
from servetop.tui.state.frame import Frame
from servetop.tui.state.time_axis import STEPS, time_axis_at

STAGES = [
    StageChange(at=at, index=index, label="", request_rate=rate, max_concurrency=None, max_num_seqs=None)
    for index, (at, rate) in enumerate([(0.0, None), (6.0, 4.0), (36.0, 8.0)])
]


@pytest.mark.parametrize(
    ("at", "selected", "window"),
    [(3.0, 120.0, (0.0, 15.0)), (7.0, 120.0, (6.0, 21.0)), (21.0, 120.0, (6.0, 21.0)), (21.5, 120.0, (6.0, 36.0)),
     (60.0, 120.0, (6.0, 66.0)), (126.0, 120.0, (6.0, 126.0)), (140.0, 120.0, (20.0, 140.0)),
     (60.0, 30.0, (30.0, 60.0)), (200.0, 600.0, (6.0, 306.0)), (400.0, 600.0, (6.0, 606.0)),
     (3.0, 0.0, (0.0, 15.0)), (10.0, 0.0, (6.0, 21.0)), (500.0, 0.0, (6.0, 500.0))],
)  # fmt: skip
def test_the_axis_starts_with_the_load_grows_in_steps_and_then_scrolls(
    at: float, selected: float, window: tuple[float, float]
) -> None:
    assert time_axis_at(at, selected=selected, stages=STAGES).window(at) == window


@given(st.floats(6.0, 1e4), st.sampled_from([30.0, 120.0, 600.0]))
def test_the_newest_data_are_always_on_an_axis_that_is_a_step_or_the_selected_length(
    at: float, selected: float
) -> None:
    axis = time_axis_at(at, selected=selected, stages=STAGES)
    start, end = axis.window(at)
    assert start <= at <= end
    assert axis.span in (*STEPS, selected)
    assert axis.span <= selected


def test_a_replay_has_the_axis_that_the_live_run_had(canned: ModuleType, frame_of: Callable[..., Frame]) -> None:
    for at in (8.0, 20.0, 50.0, 110.0):
        assert frame_of(canned.growing(at), at).window == frame_of(canned.finished(), at).window
