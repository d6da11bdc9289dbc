"""Simulated and published figures beside the measured ones, from the configuration of the recording alone."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.analysis.sweep.reference_figures import published_source, with_references
from servetop.analysis.sweep.sweep_cell import CellReference, SweepCell
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedCell, PublishedStudy
from tests.analysis.sweep.sweep_grids import cell, grid

CELLS = grid({16: "5 6", 64: "8 10"})
"""Measured output: 500 and 600, 800 and 1000 tokens/s at 8 and 16 requests/s."""
STAGES = tuple(StageConfig(max_num_seqs=each.max_num_seqs, request_rate=each.load) for each in CELLS)


def published(*cells: PublishedCell) -> PublishedStudy:
    return PublishedStudy(source="A study, Table 1", set_up="an engine on a card", cells=cells)


def config(*cells: PublishedCell, predicted: tuple[PredictedCell, ...] = ()) -> RunConfig:
    return RunConfig(stages=STAGES, published=published(*cells), predicted=predicted)


def test_each_cell_has_the_figures_of_its_batch_size_and_load() -> None:
    found = with_references(
        CELLS,
        config(
            PublishedCell(max_num_seqs=16, request_rate=8.0, output_throughput=400.0),
            PublishedCell(max_num_seqs=64, request_rate=16.0, preemptions=12.0),
            predicted=(PredictedCell(max_num_seqs=16, request_rate=16.0, output_throughput=800.0, preemptions=3),),
        ),
    )
    nothing: list[CellReference | None] = [None]
    assert [each.published for each in found] == [
        CellReference(output_throughput=400.0, preemptions=None, ratio=1.25), *nothing, *nothing,
        CellReference(output_throughput=None, preemptions=12.0, ratio=None),
    ]  # fmt: skip
    assert [each.simulated for each in found] == [
        *nothing, CellReference(output_throughput=800.0, preemptions=3, ratio=0.75), *nothing, *nothing,
    ]  # fmt: skip


def test_a_cell_of_other_settings_or_another_concurrency_has_no_figures() -> None:
    reference = PublishedCell(max_num_seqs=16, request_rate=8.0, output_throughput=400.0)
    other = dataclasses.replace(CELLS[0], settings='{"input_len":8}')
    limited = dataclasses.replace(CELLS[0], max_concurrency=4)
    assert [each.published for each in with_references([other, limited], config(reference))] == [None, None]
    same = dataclasses.replace(reference, settings={"input_len": 8})
    (found,) = with_references([other], config(same))
    assert found.published is not None


def test_a_sweep_that_leaves_the_batch_size_to_the_engine_ignores_that_of_the_simulator() -> None:
    measured = cell(1024, 8.0, "5")
    prediction = PredictedCell(max_num_seqs=256, request_rate=8.0, output_throughput=500.0)
    left = RunConfig(stages=(StageConfig(request_rate=8.0),), predicted=(prediction,))
    assert with_references([measured], left)[0].simulated is not None
    sized = RunConfig(stages=(StageConfig(max_num_seqs=1024, request_rate=8.0),), predicted=(prediction,))
    assert with_references([measured], sized)[0].simulated is None


def source_of(*cells: PublishedCell, measured: list[SweepCell] = CELLS) -> float | None:
    known = config(*cells)
    found = published_source(with_references(measured, known), known)
    assert found is not None
    return found.mean_ratio


def test_the_mean_of_the_ratios_is_geometric_and_without_suspect_cells() -> None:
    cells = (
        PublishedCell(max_num_seqs=16, request_rate=8.0, output_throughput=250.0),
        PublishedCell(max_num_seqs=16, request_rate=16.0, output_throughput=1200.0),
        PublishedCell(max_num_seqs=64, request_rate=8.0, output_throughput=1.0, suspect=True),
    )
    assert source_of(*cells) == pytest.approx(1.0)


def test_without_a_common_throughput_there_is_no_mean() -> None:
    assert source_of(PublishedCell(max_num_seqs=64, request_rate=16.0, preemptions=12.0)) is None
    assert published_source(CELLS, RunConfig(stages=STAGES)) is None
