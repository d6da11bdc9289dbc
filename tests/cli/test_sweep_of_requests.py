"""A sweep over what the requests are: one recording, resumable, with figures of each cell."""

from __future__ import annotations

import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, wait_for

pytestmark = pytest.mark.integration

GRID = """
max_num_seqs = [4, 8]
request_rate = 40
num_prompts = 12
model = "opt-1.3b"
[grid]
random_input_len = [16, 64]
random_output_len = [4, 8]
zip = ["random_input_len", "random_output_len"]
[[cell]]
max_num_seqs = 4
input_len = 128
output_len = 2
max_concurrency = 3
[sim]
gpu = "a100-40"
"""
CELLS = [(4, 16, 4), (4, 64, 8), (4, 128, 2), (8, 16, 4), (8, 64, 8)]


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    file = tmp_path / "grid.toml"
    file.write_text(GRID)
    return file


def cells(summary: dict[str, Any]) -> list[tuple[int, int, int]]:
    found = [stage for stage in summary["stages"] if stage["finished"]]
    return [(each["max_num_seqs"], each["settings"]["input_len"], each["settings"]["output_len"]) for each in found]


def sent(recording: Path) -> list[set[tuple[int, int]]]:
    """Return the lengths of the requests of each stage."""
    reader, lengths = RecordingReader.open(recording), defaultdict(set)
    for stage, prompt, output in reader.request_rows(("stage", "prompt_tokens", "output_tokens")):
        lengths[stage].add((prompt, output))
    reader.close()
    return [lengths[stage] for stage in sorted(lengths)]


@pytest.mark.parametrize("workers", [1, 2])
def test_each_cell_sends_its_own_requests(servetop: Servetop, grid: Path, workers: int) -> None:
    grid.write_text(f"workers = {workers}\n{GRID}")
    done = servetop("sweep", str(grid), "--json")
    assert done.code in RAN, done.err
    assert cells(done.summary) == CELLS
    assert [stage["completed"] for stage in done.summary["stages"]] == [12] * 5
    (recording,) = servetop.folder.glob("*.servetop")
    assert sent(recording) == [{(prompt, output)} for _, prompt, output in CELLS]
    assert [cell["settings"]["input_len"] for cell in done.summary["sweep"]["cells"]] == [16, 16, 64, 64, 128]
    reader = RecordingReader.open(recording)
    planned = [(each.max_num_seqs, each.settings) for each in reader.header.config.predicted]
    reader.close()
    assert [(batch, settings["input_len"], settings["output_len"]) for batch, settings in planned] == CELLS


def test_an_interrupted_sweep_measures_the_cells_that_are_missing(servetop: Servetop, grid: Path) -> None:
    with servetop.started("sweep", str(grid), "--headless") as process:
        recording = wait_for(lambda: next(iter(servetop.folder.glob("*.servetop")), None), seconds=10, what="recording")
        wait_for(lambda: recording.stat().st_size and len(sent(recording)) >= 2, seconds=20, what="the second cell")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    done = servetop("sweep", str(grid), "--json", "--resume")
    assert done.code in RAN, done.err
    assert "of 5 cells left" in done.err
    assert sorted(cells(done.summary)) == sorted(CELLS)
    assert "nothing to resume" in servetop("sweep", str(grid), "--json", "--resume").err


def test_the_tables_name_what_each_row_sends(servetop: Servetop, grid: Path) -> None:
    done = servetop("sweep", str(grid), "--headless")
    table = done.out[done.out.index("Output throughput, tok/s (settings and batch size down") :].splitlines()
    assert [row.strip().partition("  ")[0] for row in table[3:8]] == [
        "in 16 · out 4 · 4",
        "in 16 · out 4 · 8",
        "in 64 · out 8 · 4",
        "in 64 · out 8 · 8",
        "in 128 · out 2 · 4 · c3",
    ]


def test_datasets_and_hit_rates_vary_within_one_sweep(servetop: Servetop, grid: Path) -> None:
    grid.write_text(
        'request_rate = 40\nnum_prompts = 10\nmodel = "opt-1.3b"\nrandom_output_len = 4\n'
        '[[cell]]\ndataset_name = "sonnet"\n[[cell]]\ncache_hit_rate = 0.5\nrandom_input_len = 256\nprefix_len = 0\n'
        "[[cell]]\nrandom_input_len = 32\n"
    )
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 2
    assert "--prefix-cache warm" in done.err
    grid.write_text(grid.read_text().replace("[[cell]]", 'prefix_cache = "cold"\n[[cell]]', 1))
    done = servetop("sweep", str(grid), "--json")
    assert done.code in RAN, done.err
    assert [stage["completed"] for stage in done.summary["stages"]] == [10] * 3


def test_a_cell_longer_than_the_context_fails_and_the_others_are_measured(servetop: Servetop, grid: Path) -> None:
    grid.write_text(
        'request_rate = 40\nnum_prompts = 6\nmodel = "opt-1.3b"\nrandom_output_len = 4\n'
        "[grid]\nrandom_input_len = [9000, 16, 8000]\n"
    )
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 1
    assert "in 9000 failed: each request needs 9,000 + 4 tokens" in done.complaint
    assert "(and 1 other cell)" in done.complaint
    outcomes = {stage["settings"]["input_len"]: stage["outcome"] for stage in done.summary["stages"]}
    assert outcomes == {9000: "failed", 8000: "failed", 16: "whole"}
    assert "2 of 3 cells left" in servetop("sweep", str(grid), "--json", "--resume").err


def test_a_sweep_of_which_no_cell_fits_ends_as_a_run_does(servetop: Servetop, grid: Path) -> None:
    grid.write_text('request_rate = 40\nmodel = "opt-1.3b"\n[grid]\nrandom_input_len = [9000, 8000]\n')
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 2
    assert "the model's context has 2,048" in done.complaint
