"""Each advice that can be run is a command, the most useful first, and no command is one that is refused."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.cli.main import main
from servetop.core.config import StageConfig
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.next_commands import next_commands
from servetop.reports.page.report_page import ReportPage, SearchTexts, report_page
from tests.analysis.sweep.sweep_grids import grid, judged


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample")


def swept(page: ReportPage, sweep: SweepVerdict, *, batches: bool = True) -> ReportPage:
    """The page of a sweep, whose stages set batch sizes."""
    stages = (StageConfig(request_rate=8.0, duration=20.0, max_num_seqs=32 if batches else None),)
    config = replace(page.record.header.config, stages=stages)
    record = replace(page.record, header=replace(page.record.header, config=config))
    return replace(page, record=record, summary=replace(page.summary, sweep=sweep))


def commands(page: ReportPage) -> list[str]:
    return [shlex.join(words) for _, words in next_commands(page)]


def test_a_run_tries_its_advice_first(sample: ReportPage) -> None:
    first, second = commands(sample)
    assert first == "servetop rerun sample --max-num-seqs 32"
    assert second == "servetop rerun sample --request-rate 11.3 --duration 3m"


def test_a_sweep_measures_next_to_its_best_cell(sample: ReportPage) -> None:
    between = judged(grid({32: "8/99 15.9/99 12/60"}))
    assert commands(swept(sample, between)) == [
        "servetop rerun sample --max-num-seqs 32 --ramp 18:1m,20:1m,22:1m",
        "servetop rerun sample --max-num-seqs 32 --request-rate 16 --duration 3m",
    ]
    above = judged(grid({32: "8/99 15.9/99 23.9/99"}))
    assert commands(swept(sample, above))[0] == "servetop rerun sample --max-num-seqs 32 --ramp 30:1m,36:1m"
    assert commands(swept(sample, above, batches=False))[0] == "servetop rerun sample --ramp 30:1m,36:1m"


def test_a_larger_batch_size_is_tried_at_the_same_loads(sample: ReportPage) -> None:
    advised = replace(judged(grid({32: "8/99 15.9/99 12/60"})), advised_batch=64)
    assert commands(swept(sample, advised))[1] == "servetop rerun sample --max-num-seqs 64 --ramp 16:1m,24:1m"


def test_a_sweep_that_keeps_nothing_tries_a_lower_load(sample: ReportPage) -> None:
    missed = judged(grid({32: "5/60 5/50 5/40"}))
    command = "servetop rerun sample --max-num-seqs 32 --request-rate 4 --duration 3m"
    assert commands(swept(sample, missed)) == [command]


def test_closed_loops_have_clients_instead_of_a_rate(sample: ReportPage) -> None:
    closed = judged(grid({32: "8/99 15.9/99 23.9/99"}, closed=True))
    options = "--max-num-seqs 32 --request-rate inf --max-concurrency 36 --duration 1m"
    assert commands(swept(sample, closed))[0] == f"servetop rerun sample {options}"


def test_cells_with_settings_of_their_own_have_no_command(sample: ReportPage) -> None:
    cells = [replace(each, settings='{"input_len":512}') for each in grid({32: "8/99 15.9/99 12/60"})]
    assert commands(swept(sample, judged(cells))) == []


def test_an_interrupted_search_is_continued_and_a_finished_one_is_not(sample: ReportPage) -> None:
    search = cast("Any", object())
    assert commands(replace(sample, search=search)) == []
    assert commands(replace(sample, search=search, texts=SearchTexts(unfinished=True))) == [
        "servetop search --resume sample"
    ]


def test_an_imported_run_is_not_repeated(sample: ReportPage) -> None:
    assert commands(replace(sample, summary=replace(sample.summary, imported="vllm"))) == []


def test_the_loads_of_a_sweep_are_a_plan_that_rerun_takes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = "--max-num-seqs 32 --ramp 18:1m,20:1m,22:1m --dry-run --anyway --json"
    code = main(["rerun", "sample", *words.split()])
    plan.write_text(capsys.readouterr().out, encoding="utf-8")
    assert code == 0
    assert '"refused": []' in plan.read_text(encoding="utf-8")
