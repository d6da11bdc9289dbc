"""The thresholds of a sweep's cells (`cell_threshold`), judged by its summary."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.checks.cell_thresholds import judge_cells, parse_cell_thresholds
from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.sweep.cell_checks import CellChecks
from servetop.recordings.read.load_requests import load_stage_requests
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.cache_metrics import IdealCache
from servetop.reports.summary.load_stage_figures import load_stage_figures


def cell_checks(
    reader: RecordingReader, run: RunColumns, stages: Sequence[StageSummary], *, cache: IdealCache
) -> CellChecks | None:
    """Judge the cells of a run; None without thresholds of cells, or before the first cell was measured."""
    thresholds = parse_cell_thresholds(run.header.config)
    if not thresholds or not stages:
        return None
    figures = load_stage_figures(reader, run, load_stage_requests(reader), cache=cache)
    return judge_cells(stages, thresholds, figures)
