"""Panels of a finished run show its largest values, not those of its last sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.text import formats
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.live.preemptions import draw_preemptions
from servetop.tui.panels.live.queue import draw_queue
from servetop.tui.panels.panel import Panel
from servetop.tui.state.engine_peaks import EnginePeaks
from servetop.tui.state.frame import Frame
from servetop.tui.textual_seam import titles_of

FrameOf = Callable[..., Frame]


def above(frame: Frame) -> tuple[str, str]:
    """The values above the bars of the queue and of the preemptions."""
    axes = Axes(window=frame.window, limit=100.0)
    queue = draw_queue(frame.stats, axes, (28, 2), peaks=frame.peaks)
    preemptions = draw_preemptions(frame.stats, axes, (28, 2), peaks=frame.peaks)
    return Lines(queue[:1]).plain, Lines(preemptions[:1]).plain


def test_a_finished_run_shows_its_peaks_and_its_total(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    samples = [tick.engine for tick in run.ticks if tick.engine]
    frame = frame_of(run, 126.0)
    assert frame.peaks is not None
    assert frame.peaks.running == max(sample.running for sample in samples)
    assert frame.peaks.waiting == max(sample.waiting for sample in samples)
    queue, preemptions = above(frame)
    assert queue == f"⣿ {frame.peaks.running:.0f} run  ⡪ {frame.peaks.waiting:.0f} wait"
    assert preemptions == f"Σ {frame.stats.totals.preemptions:.0f}  peak {formats.number(frame.peaks.preemptions)}/s"


def test_pages_that_may_describe_an_earlier_load_are_no_peaks(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.facts = replace(run.facts, page_age=1_000.0)
    peaks = frame_of(run, 126.0).peaks
    assert isinstance(peaks, EnginePeaks)
    assert all(math.isnan(each) for each in (peaks.running, peaks.waiting))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_queue_says_why_it_has_no_peaks(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], size: tuple[int, int]
) -> None:
    run = canned.finished()
    run.facts = replace(run.facts, page_age=500.0)
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=size):
        queue = app.screen.query_one("#queue", Panel)
        assert "page up to 500 s old" in f"{titles_of(queue)[0]}\n{queue.render().plain}"


def test_the_cursor_shows_the_values_of_its_time_after_the_end_too(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 126.0, cursor=Cursor(at=60.0))
    assert frame.peaks is None
    assert above(frame)[0] == above(frame_of(canned.finished(), 60.0))[0]


def test_a_run_in_progress_has_no_peaks(canned: ModuleType, frame_of: FrameOf) -> None:
    assert frame_of(canned.growing(110.0), 110.0).peaks is None


def test_what_an_engine_does_not_export_has_no_peak(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.ticks = [replace(tick, engine=None) for tick in run.ticks]
    peaks = frame_of(run, 126.0).peaks
    assert isinstance(peaks, EnginePeaks)
    assert all(math.isnan(each) for each in (peaks.running, peaks.waiting, peaks.preemptions))
