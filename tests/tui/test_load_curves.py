"""Curves over the load, of a run and its baseline."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from servetop.core.arrays import FloatArray
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.load_curve_panel import draw_load_curves
from servetop.tui.panels.detail.sweep import draw_sweep
from servetop.tui.state.baseline_clock import BaselineClock
from servetop.tui.state.baseline_run import BaselineReader, BaselineRun
from servetop.tui.state.frame import Frame
from servetop.tui.state.load_curves import LoadCurve, load_curves
from servetop.tui.state.sweep_table import SweepTable

FrameOf = Callable[..., Frame]


@pytest.fixture(scope="module")
def baseline(canned: ModuleType) -> BaselineRun:
    return BaselineReader(canned.finished()).read()


def curve(loads: list[float], rates: list[float]) -> LoadCurve:
    values: FloatArray = np.array(rates)
    return LoadCurve(loads=np.array(loads), output_rates=values, latencies=values / 1e4)


def test_a_live_run_has_the_stages_that_are_over_and_its_baseline_all(
    canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun
) -> None:
    frame = frame_of(canned.growing(80.0), 80.0)
    own, before = load_curves(frame, baseline, metric="ttft")
    assert own.batch == before.batch
    assert list(own.loads) == list(before.loads)[: own.loads.size]
    assert 0 < own.loads.size < before.loads.size
    np.testing.assert_allclose(own.output_rates, before.output_rates[: own.loads.size])


def test_another_batch_size_is_compared_if_it_is_the_change_itself(
    canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun
) -> None:
    run = canned.finished()
    run.stages = [replace(stage, max_num_seqs=32) for stage in run.stages]
    own, before = load_curves(frame_of(run, 126.0), baseline, metric="ttft")
    assert (own.batch, before.batch) == (32, canned.BATCH)
    assert set(own.loads) == set(before.loads)


def test_both_curves_have_marks_at_their_loads_and_a_shade_between_them() -> None:
    own, before = curve([8, 16, 24], [900, 1700, 1800]), curve([8, 16], [1000, 1900])
    text = Lines(draw_load_curves(own, before, latency=False, width=70, height=12)).plain
    assert (text.count("●"), text.count("○")) == (3, 2)
    assert text.split("\n")[-1].split() == ["8", "16", "24"]
    styles = {style for row in draw_load_curves(own, before, latency=True, width=70, height=24) for _, style in row}
    assert {"sky", "baseline"} <= styles


def test_nothing_is_drawn_beyond_the_measured_loads() -> None:
    rows = draw_load_curves(curve([20, 30], [900, 900]), curve([], []), latency=False, width=70, height=12)
    left = [row[6:40] for row in Lines(rows).plain.split("\n")[:-1]]
    assert not "".join(left).strip(" │┤")


def test_a_run_without_a_finished_stage_says_so(canned: ModuleType, frame_of: FrameOf) -> None:
    curves = load_curves(frame_of(canned.growing(10.0), 10.0), None, metric="ttft")
    assert "no stage" in Lines(draw_load_curves(*curves, latency=False, width=60, height=8)).plain


def test_a_sweep_has_the_difference_from_the_baseline_in_each_cell(
    canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun
) -> None:
    run = canned.finished()
    frame = frame_of(run, 126.0)
    compared = replace(frame, baseline=BaselineClock(baseline).at(frame, run.stages, run.end, columns=120))
    table = SweepTable.of(compared)
    assert Lines(draw_sweep(table, 100, 12)).plain.count("±0.0%") == len(table.cells)
    half = replace(table, before={key: rate / 2 for key, rate in table.before.items()})
    assert "+100%" in Lines(draw_sweep(half, 100, 12)).plain
    assert not math.isnan(sum(table.before.values()))
    assert "%" not in Lines(draw_sweep(SweepTable.of(frame), 100, 12)).plain
