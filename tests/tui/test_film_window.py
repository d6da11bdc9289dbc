"""The window of the batch film: its length, its place, and how many requests it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from servetop.tui.drawing.cursor import Cursor
from servetop.tui.state.film_window import (
    LENGTHS,
    MOST_FILM_REQUESTS,
    film_length,
    film_window,
    in_flight_during,
    read_until,
)
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]


@pytest.mark.parametrize("span", [30.0, 120.0, 600.0, 0.0])
@pytest.mark.parametrize("columns", [70, 150, 210])
def test_the_length_needs_no_more_requests_than_are_read(
    canned: ModuleType, frame_of: FrameOf, span: float, columns: int
) -> None:
    frame = frame_of(canned.finished(), 108.0, span=span)
    length = film_length(0.0, frame, columns)
    series = frame.stats.series
    assert length in LENGTHS
    assert length <= (span or 108.0)
    assert in_flight_during(series, 108.0 - length, read_until(series, 108.0 - length, 108.0)) <= MOST_FILM_REQUESTS


def test_the_length_stays_while_the_run_goes_on(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    lengths = [film_length(0.0, frame_of(run, 60.0), 150)]
    for at in np.arange(60.25, 66.0, 0.25):
        lengths.append(film_length(lengths[-1], frame_of(run, float(at)), 150))
    assert len(set(lengths)) <= 2


def test_the_window_moves_in_steps(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    windows = [film_window(frame_of(run, at), 16.0) for at in (100.5, 101.0, 102.0, 102.25)]
    assert windows == [(86.0, 102.0)] * 3 + [(88.0, 104.0)]


def test_a_cursor_to_the_left_takes_the_film_along(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    near = frame_of(run, 100.0, cursor=Cursor(at=90.0))
    far = frame_of(run, 100.0, cursor=Cursor(at=40.0))
    assert film_window(near, 16.0) == film_window(frame_of(run, 100.0), 16.0)
    left, right = film_window(far, 16.0)
    assert right - left == 16.0
    assert left < 40.0 < right


def test_requests_that_wait_at_the_end_are_not_read_if_there_are_too_many(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    series = frame_of(canned.finished(), 108.0).stats.series
    busy = replace(series, sent=series.sent * 4, waiting=series.waiting * 10)
    waiting = float(busy.waiting[-1])
    last = read_until(busy, 20.0, 108.0)
    size = float(series.times[1] - series.times[0])
    assert waiting > 10
    assert last < 108.0
    assert float(busy.sent[busy.times > last].sum()) * size <= waiting
    assert read_until(busy, 100.0, 108.0) == 108.0
    assert read_until(series, 0.0, 20.0) == 20.0
