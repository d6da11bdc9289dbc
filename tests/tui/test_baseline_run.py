"""A baseline as it is read, and as it is drawn behind a run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import RecordingError
from servetop.core.interfaces.run_source import RunSource
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.braille import SWATCHES
from servetop.tui.drawing.charts import Axes, Bars
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.baseline_parts import bars_or_lines, delta
from servetop.tui.panels.header import draw_header
from servetop.tui.panels.live.latency import draw_latency
from servetop.tui.panels.live.throughput import draw_throughput
from servetop.tui.state.baseline import distinct_names
from servetop.tui.state.baseline_clock import BaselineClock, bin_ends
from servetop.tui.state.baseline_run import BaselineReader, BaselineRun
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]


@pytest.fixture(scope="module")
def baseline(canned: ModuleType) -> BaselineRun:
    return BaselineReader(canned.finished()).read()


def compared(frame: Frame, baseline: BaselineRun, run: Any) -> Frame:
    clock = BaselineClock(baseline)
    return replace(frame, baseline=clock.at(frame, run.stages, run.end, columns=120))


@pytest.fixture(scope="module")
def frame(canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun) -> Frame:
    run = canned.finished()
    return compared(frame_of(run, 100.0), baseline, run)


def test_a_run_lies_on_its_own_baseline(frame: Frame) -> None:
    shown, series = frame.baseline, frame.stats.series
    assert shown is not None
    known = series.times > 20
    for metric, rows in series.latencies.items():
        np.testing.assert_allclose(shown.at(shown.latencies[metric][2], series.times)[known], rows[2][known])
    rate = shown.at(shown.rates["output_tokens"], series.times)
    np.testing.assert_allclose(rate[known], series.smoothed["output_tokens"].mean[known])
    np.testing.assert_allclose(shown.at(shown.gauges["running"], series.times)[known], series.running[known])


@pytest.mark.parametrize("at", [100.0, 100.1, 61.37, 14.24, math.inf])
def test_its_values_are_those_of_the_run_at_the_same_time(
    at: float, canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun
) -> None:
    """Also between the ends of two ticks, as while a recording is played, and at the end."""
    run = canned.finished()
    frame = compared(frame_of(run, min(at, run.end.at)), baseline, run)
    shown = frame.baseline
    assert shown is not None
    for name, column in {"ok": "completed", "output_tokens": "output_tokens", "preemptions": "preemptions"}.items():
        assert shown.rates_now[name] == pytest.approx(getattr(frame.stats.rates, column)), name
    assert shown.latencies_now["ttft"] == frame.stats.latencies["ttft"]
    assert shown.gauges_now["in_flight"] == frame.stats.load.in_flight


def test_at_both_ends_its_values_are_those_at_its_own_end(
    canned: ModuleType, frame_of: FrameOf, baseline: BaselineRun
) -> None:
    run = canned.finished()
    late = replace(run.end, at=run.end.at + 3)
    frame = replace(frame_of(run, run.end.at), end=late)
    shown = BaselineClock(baseline).at(frame, run.stages, late, columns=120)
    assert not math.isnan(shown.rates_now["output_tokens"])


def test_it_reaches_beyond_the_playhead_as_far_as_the_time_axis(frame: Frame) -> None:
    assert frame.baseline is not None
    assert frame.baseline.times[-1] == pytest.approx(frame.window[1])


@pytest.mark.parametrize(("until", "span", "first", "last"), [(120.0, 120.0, 1.0, 120.0), (37.3, 30.0, 7.75, 37.25)])
def test_bins_end_on_the_grid_of_the_series(until: float, span: float, first: float, last: float) -> None:
    ends = bin_ends(until, span=span, columns=120)
    assert (ends[0], ends[-1]) == (first, last)


def test_a_growing_baseline_is_read_on(canned: ModuleType) -> None:
    run = canned.growing(60.0)
    reader = BaselineReader(run)
    first = reader.read()
    run.now = 70.0
    second = reader.read()
    assert first.live
    assert (first.edge, second.edge) == (60.0, 70.0)
    assert second.sums["output_tokens"][239] == first.sums["output_tokens"][239]


def test_what_the_engine_does_not_export_is_unknown(canned: ModuleType) -> None:
    bare = BaselineReader(canned.without_metrics()).read()
    times = np.array([50.0, 60.0])
    assert np.isnan(bare.rate("preemptions", times, seconds=5)).all()
    assert np.isnan(bare.newest("kv_usage", times)).all()


def test_a_run_that_failed_to_start_is_a_baseline_without_values(canned: ModuleType) -> None:
    empty = BaselineReader(canned.failed_to_start()).read()
    assert np.isnan(empty.rate("ok", np.array([1.0]), seconds=5)).all()
    assert np.isnan(empty.percentiles("ttft", np.array([1.0]))).all()


def test_charts_name_the_baseline_and_tables_have_differences(frame: Frame) -> None:
    axes = Axes(window=frame.window, limit=4000.0)
    throughput = Lines(draw_throughput(frame.stats, axes, 90, 12, baseline=frame.baseline)).plain
    assert f"{SWATCHES['fine']} canned" in throughput
    latency = Lines(draw_latency(frame.stats, axes, (90, 12), metric="ttft", baseline=frame.baseline)).plain
    assert latency.count("±0.0 %") >= 6
    assert Lines(draw_latency(frame.stats, axes, (33, 3), metric="ttft", baseline=frame.baseline)).plain.count("%") == 3


def test_two_rows_show_both_lines_and_one_row_the_bars(frame: Frame) -> None:
    assert frame.baseline is not None
    bars = Bars(times=frame.stats.series.times, values=frame.stats.series.output_tokens, style="sky")
    axes = Axes(window=frame.window, limit=4000.0)
    before = frame.baseline.rates["output_tokens"] / 2
    two, one = (
        bars_or_lines(bars, axes, before, baseline=frame.baseline, width=60, height=height) for height in (2, 1)
    )
    assert {"sky", "baseline"} <= {style for row in two for _, style in row}
    assert "baseline" not in {style for _, style in one[0]}


@pytest.mark.parametrize(
    ("now", "then", "text"), [(97.0, 100.0, "−3.0 %"), (math.nan, 1.0, "–"), (None, 1.0, "–"), (5.0, 0.0, "–")]
)
def test_a_difference_has_the_same_width_whatever_it_is(now: float | None, then: float, text: str) -> None:
    row = delta(now, then)
    assert Lines([row]).plain.split() == ["Δ", *text.split()]
    assert sum(len(run) for run, _ in row) == 9


def test_the_header_names_the_baseline_and_what_differs(
    canned: ModuleType, frame: Frame, baseline: BaselineRun
) -> None:
    config = replace(baseline.header.config, seed=7, label="main")
    other = replace(baseline, header=replace(baseline.header, config=config))
    changed = replace(frame, baseline=BaselineClock(other).at(frame, frame.all_stages, None, columns=120))
    assert "vs main · seed differs" in "".join(run for run, _ in draw_header(changed, 160))
    assert "vs main · 1 key " in "".join(run for run, _ in draw_header(changed, 84))
    assert "vs canned · same manifest" in "".join(run for run, _ in draw_header(frame, 160))
    engine = replace(config.engine, model="mistral-7b")
    facts = replace(canned.VLLM, model="mistral-7b")
    unlike = replace(baseline, header=replace(baseline.header, config=replace(config, engine=engine), engine=facts))
    warned = replace(frame, baseline=BaselineClock(unlike).at(frame, frame.all_stages, None, columns=120))
    assert ("▲ not comparable: model name differs", "bad") in draw_header(warned, 160)


@pytest.mark.parametrize(
    ("run", "baseline", "names"),
    [(("", "new"), ("", "main"), ("new", "main")), (("fp8", "new"), ("", "main"), ("fp8", "main")),
     (("a100", "new"), ("a100", "main"), ("new", "main"))],
)  # fmt: skip
def test_labels_name_both_runs_unless_they_are_the_same(
    run: tuple[str, str], baseline: tuple[str, str], names: tuple[str, str]
) -> None:
    assert distinct_names(run, baseline) == names


@contextlib.contextmanager
def source(run: RunSource) -> Iterator[RunSource]:
    yield run


async def test_the_baseline_is_read_after_the_first_frame_and_a_key_hides_it(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], text_of: Callable[[DashboardApp, str], str]
) -> None:
    options = DashboardOptions(baseline=lambda: source(canned.finished()))
    app = dashboard(canned.finished(), start_at=100.0, options=options)
    async with app.run_test(size=(120, 40)) as pilot:
        while app.viewer.frame().baseline is None:
            await pilot.pause(0.01)
        assert "Δ  ±0.0 %" in text_of(app, "#throughput")
        await pilot.press("a")
        assert "Δ" not in text_of(app, "#throughput")


async def test_a_baseline_that_cannot_be_read_is_one_line_and_the_run_is_shown(
    canned: ModuleType, dashboard: Callable[..., DashboardApp]
) -> None:
    def torn() -> contextlib.AbstractContextManager[RunSource]:
        raise RecordingError("main.servetop is damaged")

    app = dashboard(canned.finished(), options=DashboardOptions(baseline=torn))
    async with app.run_test(size=(80, 24)) as pilot:
        while not app.viewer.view.message:
            await pilot.pause(0.01)
        assert app.viewer.view.message == "no baseline: main.servetop is damaged"
