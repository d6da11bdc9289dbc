"""A sweep is one recording with a stage per cell, and resumes where it was interrupted."""

from __future__ import annotations

import signal
from collections import defaultdict
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, wait_for

pytestmark = pytest.mark.integration

GRID = """
max_num_seqs = [2, 8]
request_rate = [20, 40]
num_prompts = 12
[workload]
input_len = 8
output_len = 4
[sim]
gpu = "a100-40"
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    file = tmp_path / "grid.toml"
    file.write_text(GRID)
    return file


def cells(summary: dict[str, object]) -> list[tuple[object, object]]:
    stages = summary["stages"]
    assert isinstance(stages, list)
    return [(stage["max_num_seqs"], stage["request_rate"]) for stage in stages if stage["finished"]]


def test_every_cell_is_a_stage_of_one_recording(servetop: Servetop, grid: Path) -> None:
    done = servetop("sweep", str(grid), "--json")
    assert done.code in RAN, done.err
    assert cells(done.summary) == [(2, 20), (2, 40), (8, 20), (8, 40)]
    assert all(stage["completed"] == 12 for stage in done.summary["stages"])
    (recording,) = servetop.folder.glob("*.servetop")
    assert_not_faster_than_predicted(recording)


def assert_not_faster_than_predicted(recording: Path) -> None:
    """Compare the cells with their stages, from the first request due on: a late client sends it late."""
    reader = RecordingReader.open(recording)
    cells = reader.header.config.predicted
    stages = defaultdict(list)
    for stage, due, ended, tokens in reader.request_rows(("stage", "due", "done_at", "output_tokens")):
        stages[stage].append((due, ended, tokens))
    reader.close()
    assert len(cells) == len(stages)
    for cell, (_, rows) in zip(cells, sorted(stages.items()), strict=True):
        due, ended, tokens = zip(*rows, strict=True)
        assert 0 < sum(tokens) / (max(ended) - min(due)) <= FASTER * cell.output_throughput


FASTER = 2.0
"""How much faster than predicted a run may be: requests that a late client sends together share steps of the engine.

A busy machine may slow it down by any factor.
"""
LOADS = {
    "closed loop": 'max_concurrency = [2, 6]\nthink_time = "0.1"\nlengths = "lognormal:input_mean=60,output_mean=30"',
    "conversations": 'request_rate = [20]\nnum_turns = "uniform:min=1,max=3"\ninput_len = 20\noutput_len = 20',
    "limited": "request_rate = [100]\nmax_concurrency = [3]\nprefix_len = 32\ninput_len = 20\noutput_len = 20",
}


@pytest.mark.parametrize("load", LOADS)
def test_a_sweep_of_the_simulator_is_not_faster_than_predicted(servetop: Servetop, grid: Path, load: str) -> None:
    grid.write_text(f'num_prompts = 40\nmodel = "opt-1.3b"\n{LOADS[load]}\n[sim]\ngpu = "a100-40"\n')
    done = servetop("sweep", str(grid), "--json")
    assert done.code in RAN, done.err
    (recording,) = servetop.folder.glob("*.servetop")
    assert_not_faster_than_predicted(recording)


def test_the_table_has_batch_sizes_down_and_rates_across(servetop: Servetop, grid: Path) -> None:
    done = servetop("sweep", str(grid), "--headless")
    table = done.out[done.out.index("Output throughput, tok/s (batch") :].splitlines()
    assert table[1].split() == ["batch", "20", "40"]
    assert [row.split()[0] for row in table[3:5]] == ["2", "8"]


def test_an_interrupted_sweep_goes_on_with_the_cells_that_it_had_not_finished(servetop: Servetop, grid: Path) -> None:
    grid.write_text(GRID.replace("[sim]", 'headers = { X-Api-Key = "open-sesame" }\n[sim]'))  # in no recording
    with servetop.started("sweep", str(grid), "--headless") as process:
        recording = wait_for(lambda: next(iter(servetop.folder.glob("*.servetop")), None), seconds=10, what="recording")
        wait_for(lambda: recording.stat().st_size and _stages(recording) >= 3, seconds=20, what="the third cell")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    done = servetop("sweep", str(grid), "--json", "--resume")
    assert done.code in RAN, done.err
    assert "of 4 cells left" in done.err
    assert sorted(cells(done.summary)) == [(2, 20), (2, 40), (8, 20), (8, 40)]
    ids = [row[0] for row in RecordingReader.open(recording).request_rows(("id",))]
    assert len(ids) == len(set(ids))
    again = servetop("sweep", str(grid), "--json", "--resume")
    assert "nothing to resume" in again.err
    assert b"open-sesame" not in recording.read_bytes()


def _stages(recording: Path) -> int:
    reader = RecordingReader.open(recording)
    try:
        return len(reader.stages())
    finally:
        reader.close()


PUBLISHED = """
max_num_seqs = 64
request_rate = [32, 64]
num_prompts = 12
random_input_len = 8
random_output_len = 4
[published]
source = "Run:ai whitepaper, Table 5"
set_up = "TensorRT-LLM, Llama-2-7b, A100 40 GB"
table = "table05_tensorrt_llm"
[sim]
gpu = "a100-40"
"""


def test_the_recording_of_a_sweep_has_the_published_and_simulated_figures(servetop: Servetop, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(PUBLISHED)
    assert servetop("sweep", str(file), "--headless").code in RAN
    (recording,) = servetop.folder.glob("*.servetop")
    sweep = servetop("summary", str(recording), "--json").summary["sweep"]
    assert sweep["published"]["source"] == "Run:ai whitepaper, Table 5"
    assert [cell["published"]["output_throughput"] for cell in sweep["cells"]] == [2485, 2596]
    for cell in sweep["cells"]:
        for other in (cell["published"], cell["simulated"]):
            assert other["ratio"] == pytest.approx(cell["output_throughput"] / other["output_throughput"])
    again = servetop("sweep", str(file), "--headless", "--resume")
    assert "nothing to resume" in again.err
