"""The matrix of a sweep that still runs has the intervals over the starts so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.analysis.sweep.start_mean import mean_of_starts, spread_text
from servetop.core.config import RunConfig
from servetop.core.events import Note, Severity
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.sweep import draw_sweep
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_spreads import sweep_spreads
from servetop.tui.state.sweep_table import SweepTable

FrameOf = Callable[..., Frame]


@pytest.fixture
def repeats(canned: ModuleType) -> Any:
    """A run whose four stages are repeats of one cell, each in a start of its own."""
    run = canned.finished()
    run.stages = [replace(each, request_rate=each.request_rate and 8.0, repeat=each.index) for each in run.stages]
    run.config = replace(run.config, drain_at_stages=True)
    run.notes = [
        *run.notes,
        *(
            Note(at=each.at - 0.1, severity=Severity.INFO, source="engine", text="repeat 1 → 2: restarting the engine")
            for each in run.stages
            if each.index
        ),
    ]
    run.ticks = [
        replace(tick, client=replace(tick.client, gauges=replace(tick.client.gauges, request_rate=8.0)))
        for tick in run.ticks
    ]
    return run


def begin(run: Any, index: int) -> float:
    return float(next(each.at for each in run.stages if each.index == index and each.request_rate is not None))


def shown(frame: Frame) -> str:
    return Lines(draw_sweep(SweepTable.of(frame), 120, 12)).plain


def test_the_interval_is_there_as_soon_as_two_repeats_have_ended(repeats: Any, frame_of: FrameOf) -> None:
    one, two = (frame_of(replace(repeats), begin(repeats, index) + 2.0) for index in (1, 2))
    assert one.end is two.end is None
    assert sweep_spreads(one).texts == {}
    (text,) = sweep_spreads(two).texts.values()
    rates = [each.output_rate for each in two.per_stage() if each.ended]
    mean = mean_of_starts(rates, [0, 1])
    assert mean is not None
    assert mean.half_width is not None
    assert mean.interval is not None
    assert text == f"{spread_text(mean.mean, mean.interval)} of 2"
    assert text in shown(two)
    assert "± 95 % over n starts" in shown(two)
    assert "±" not in shown(one)


def test_a_seek_back_takes_the_later_starts_away(repeats: Any, frame_of: FrameOf) -> None:
    later = begin(repeats, 3) + 2.0
    (text,) = sweep_spreads(frame_of(replace(repeats), later)).texts.values()
    assert text.endswith(" of 3")
    assert sweep_spreads(frame_of(replace(repeats), begin(repeats, 1) + 2.0)).texts == {}


def test_repeats_of_one_start_have_none(repeats: Any, frame_of: FrameOf) -> None:
    repeats.notes = []
    assert sweep_spreads(frame_of(repeats, begin(repeats, 3) + 2.0)).texts == {}


def test_stages_of_a_ramp_of_loads_are_no_repeats_of_cells(repeats: Any, frame_of: FrameOf) -> None:
    repeats.config = replace(repeats.config, drain_at_stages=False)
    assert isinstance(repeats.config, RunConfig)
    assert sweep_spreads(frame_of(repeats, begin(repeats, 3) + 2.0)).texts == {}
