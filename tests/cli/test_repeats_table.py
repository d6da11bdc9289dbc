"""Cells with repeats: their means, and intervals over starts of the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.sweep.sweep_cell import CellIntervals, SweepCell
from servetop.analysis.sweep.sweep_text import sweep_lines
from servetop.cli.report.repeats_table import repeats_table
from tests.analysis.sweep.sweep_grids import cell, judged
from tests.cli.test_stage_tables import printed
from tests.harness import RAN, Servetop

INTERVALS = CellIntervals(
    request_throughput=(10.7, 11.7),
    output_throughput=(1070.0, 1170.0),
    request_goodput=None,
    p99_ttft_ms=(38.0, 42.0),
    p99_itl_ms=None,
    p99_tpot_ms=None,
    p99_e2el_ms=None,
)


def of_starts(batch: int = 16, load: float = 8.0) -> SweepCell:
    return replace(cell(batch, load, "11.2", repeats=3), starts=3, intervals=INTERVALS)


def test_a_mean_has_its_interval_and_the_number_of_starts() -> None:
    table = repeats_table(judged([of_starts(), cell(16, 16.0, "14", stage=3)], objectives={}))
    assert table is not None
    title, _, _, row = printed([table]).strip().splitlines()
    assert "with 95 % intervals over starts" in title
    assert row.split("  ")[0] == "batch 16 at 8 req/s"
    assert "11.2 [10.7, 11.7]" in row
    assert "1,120 [1,070, 1,170]" in row
    assert row.endswith("of 3 starts")


def test_repeats_of_one_start_have_no_interval_and_say_so() -> None:
    table = repeats_table(judged([cell(16, 8.0, "11.2", repeats=3)], objectives={}))
    assert table is not None
    shown = printed([table])
    assert "one start does not tell how starts differ" in shown
    assert "of 3 repeats of one start" in shown
    assert "[" not in shown


def test_without_repeats_there_is_no_table() -> None:
    assert repeats_table(judged([cell(16, 8.0, "11.2")], objectives={})) is None


def test_the_story_has_the_interval_of_the_best_cell() -> None:
    (line,) = [each.text for each in sweep_lines(judged([of_starts()], objectives={})) if "mean" in each.text]
    assert "1,120 [1,070, 1,170] tok/s" in line
    assert line.endswith("mean of 3 starts")


@pytest.mark.integration
def test_an_engine_that_restarts_between_repeats_has_as_many_starts(servetop: Servetop, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'request_rate = 40\nnum_prompts = 6\nrandom_input_len = 8\nrandom_output_len = 2\nrepeats = 2\norder = "ABBA"\n'
        "[grid]\nengine.args.kv-blocks = [256, 512]\n"
    )
    done = servetop("sweep", str(file), "--json")
    assert done.code in RAN, done.err
    cells = {each["settings"]["engine.args.kv-blocks"]: each for each in done.summary["sweep"]["cells"]}
    assert [cells[blocks]["starts"] for blocks in (256, 512)] == [2, 1]  # 256, 512, 512, 256
    low, high = cells[256]["intervals"]["output_throughput"]
    assert low <= cells[256]["output_throughput"] <= high
    assert "intervals" not in cells[512]
    (recording,) = servetop.folder.glob("*.servetop")
    shown = servetop("summary", str(recording)).out
    assert "of 2 starts" in shown
    assert "of 2 repeats of one start" in shown
