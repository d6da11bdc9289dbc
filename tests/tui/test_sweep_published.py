"""The matrix of a published study's sweep: its figures below the measured ones, live and in replay."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedCell, PublishedStudy
from servetop.core.text import formats
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.config import config_rows
from servetop.tui.panels.detail.sweep import SweepPanel, draw_sweep
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import Load, measured
from servetop.tui.state.sweep_predictions import published_texts
from servetop.tui.state.sweep_table import SweepTable

FrameOf = Callable[..., Frame]


@pytest.fixture
def run(canned: ModuleType, frame_of: FrameOf) -> Any:
    """A run whose first three cells are published with 1.25 times the measured throughput."""
    found = canned.finished()
    own = measured(frame_of(canned.finished(), 100.0))
    rates = [stage.request_rate for stage in found.config.stages][:3]
    tokens = {rate: own[canned.BATCH, Load(rate)].output_rate * 1.25 for rate in rates}
    cells = tuple(PublishedCell(request_rate=rate, output_throughput=tokens[rate]) for rate in rates)
    study = PublishedStudy(source="A study, Table 1", set_up="an engine", cells=cells)
    found.config = replace(found.config, published=study)
    return found


def matrix(frame: Frame, width: int, height: int) -> list[str]:
    return Lines(draw_sweep(SweepTable.of(frame), width, height)).plain.split("\n")


def test_published_figures_are_below_the_measured_ones_with_their_ratio(run: Any, frame_of: FrameOf) -> None:
    frame = frame_of(run, 100.0)
    row = matrix(frame, 120, 12)[2]
    expected = [formats.count(each.output_throughput) for each in run.config.published.cells]
    assert re.findall(r"†([\d,.k]+) (\d+%)", row) == [(text, "80%") for text in expected]
    assert "† A study, Table 1 (measured in % of it)" in matrix(frame, 120, 12)[-1]


def test_the_title_has_the_geometric_mean_without_suspect_cells(run: Any, frame_of: FrameOf) -> None:
    study = run.config.published
    first, second, third = study.cells
    double, wrong = replace(second, output_throughput=second.output_throughput * 2), replace(third, suspect=True)
    run.config = replace(run.config, published=replace(study, cells=(first, double, wrong)))
    title = Lines(SweepPanel(id="sweep").title(frame_of(run, 100.0))).plain
    assert "measured 56.5 % of published" in title  # the root of 0.8 x 0.4


@pytest.fixture
def preempting(run: Any) -> Any:
    """The run with published preemptions, 0, 1,000 and 2,000, in place of throughputs."""
    study = run.config.published
    cells = tuple(
        replace(each, output_throughput=None, preemptions=1000.0 * n, suspect=n == 2)
        for n, each in enumerate(study.cells)
    )
    run.config = replace(run.config, published=replace(study, cells=cells))
    return run


def test_published_preemptions_are_below_the_throughput_with_the_measured_ones(
    preempting: Any, frame_of: FrameOf
) -> None:
    frame = frame_of(preempting, 100.0)
    lines = matrix(frame, 120, 12)
    counts = [formats.count(cell.preemptions) for cell in measured(frame).values()][:3]
    pairs = zip(("0", "1,000", "2,000?"), counts, strict=True)
    assert list(published_texts(frame, measured(frame)).values()) == [f"†{first} ▲{second}" for first, second in pairs]
    assert re.findall(r"†[\d,?]+ ▲\d+", lines[2]) == list(published_texts(frame, measured(frame)).values())
    assert "† A study, Table 1 (preemptions, ▲ measured)" in " ".join(lines[-2:])
    assert "of published" not in Lines(SweepPanel(id="sweep").title(frame)).plain


@pytest.mark.parametrize("change", [{"running_now": True}, {"preemptions": float("nan")}])
def test_preemptions_that_are_not_known_stand_alone(preempting: Any, frame_of: FrameOf, change: dict[str, Any]) -> None:
    frame = frame_of(preempting, 100.0)
    cells = {key: replace(each, **change) for key, each in measured(frame).items()}
    assert list(published_texts(frame, cells).values()) == ["†0", "†1,000", "†2,000?"]


def test_the_published_row_comes_before_the_prediction_and_the_latency(run: Any, frame_of: FrameOf) -> None:
    first = run.config.published.cells[0]
    run.config = replace(run.config, predicted=(PredictedCell(request_rate=first.request_rate, output_throughput=1.0),))
    frame = frame_of(run, 100.0)
    assert SweepTable.of(frame).below[:3] == ["published", "reference", "latency"]
    shown = ["\n".join(matrix(frame, 120, height)[1:-1]) for height in (4, 5)]
    assert [("†" in text, "≈" in text) for text in shown] == [(True, False), (True, True)]


def test_a_cell_that_still_runs_has_the_published_figure_without_a_ratio(run: Any, frame_of: FrameOf) -> None:
    frame = frame_of(run, 100.0)
    running = {key: replace(each, running_now=True) for key, each in measured(frame).items()}
    assert all(re.fullmatch(r"†[\d,.k]+", text) for text in published_texts(frame, running).values())
    assert len(published_texts(frame, running)) == 3


def test_a_suspect_figure_is_marked(run: Any, frame_of: FrameOf) -> None:
    study = run.config.published
    cells = (replace(study.cells[0], suspect=True), replace(study.cells[1], output_throughput=None, preemptions=3.0))
    run.config = replace(run.config, published=replace(study, cells=cells))
    frame = frame_of(run, 100.0)
    assert ["? suspect" in matrix(frame, 120, height)[-1] for height in (3, 12)] == [False, True]
    (text,) = published_texts(frame, {}).values()
    assert text == f"†{formats.count(cells[0].output_throughput)}?"


def test_a_column_that_is_too_narrow_has_no_ratio(run: Any, frame_of: FrameOf) -> None:
    study = run.config.published
    half = tuple(replace(each, output_throughput=each.output_throughput / 2) for each in study.cells)
    run.config = replace(run.config, published=replace(study, cells=half))
    frame = frame_of(run, 100.0)
    wide, narrow = (matrix(frame, width, 20) for width in (120, 56))
    assert wide[2].count("160%") == 3
    assert (narrow[2].count("†"), narrow[2].count("%")) == (3, 0)
    numbers, published = ([match.end() for match in re.finditer(r"\d(?=[^\d,.]|$)", row)] for row in narrow[1:3])
    assert published == numbers[1:4]


def test_the_configuration_names_the_source_and_the_figures(run: Any, frame_of: FrameOf) -> None:
    shown = Lines(config_rows(frame_of(run, 100.0).header, 100)).plain
    assert re.search(r"source +A study, Table 1\n +set-up +an engine\n +batch –, 4.00 req/s +[\d,]+\n", shown)
