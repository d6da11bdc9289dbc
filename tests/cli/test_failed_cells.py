"""A cell that cannot be measured is a result of its sweep: the other cells are measured, and `--resume` repeats it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

ENGINE = Path(__file__).parent / "failing_engine.py"
WriteGrid = Callable[..., Path]


@pytest.fixture
def healed(tmp_path: Path) -> Path:
    """When this file exists, the engine no longer fails."""
    return tmp_path / "healed"


@pytest.fixture
def grid(tmp_path: Path, healed: Path) -> WriteGrid:
    def write(options: str, *, batches: Sequence[int] = (8, 16, 32), rates: Sequence[int] = (20,)) -> Path:
        file = tmp_path / "grid.toml"
        command = f"{sys.executable} {ENGINE} --healed {healed} {options}"
        file.write_text(
            f'engine = "vllm"\nmodel = "org/m"\nengine_command = {json.dumps(command)}\n'
            f"max_num_seqs = {list(batches)}\nrequest_rate = {list(rates)}\n"
            "num_prompts = 6\nrandom_input_len = 64\nrandom_output_len = 5\n"
        )
        return file

    return write


def cells(summary: dict[str, object]) -> list[tuple[object, ...]]:
    stages = summary["stages"]
    assert isinstance(stages, list)
    names = ("max_num_seqs", "request_rate", "completed", "outcome")
    return sorted(tuple(stage[name] for name in names) for stage in stages if stage["counted"])


def test_a_batch_size_for_which_the_engine_does_not_start_is_a_failed_cell(
    servetop: Servetop, grid: WriteGrid, healed: Path
) -> None:
    file = grid("--no-start 16")
    done = servetop("sweep", str(file), "--json")
    assert done.code == 3
    assert "out of GPU memory" in done.complaint
    assert "--resume measures the failed cells again" in done.complaint
    assert cells(done.summary) == [(8, 20.0, 6, "whole"), (16, 20.0, 0, "failed"), (32, 20.0, 6, "whole")]
    (failed,) = (stage for stage in done.summary["stages"] if stage["outcome"] == "failed")
    assert "out of GPU memory" in failed["failure"]
    assert done.summary["story"]["headline"].startswith("highest throughput: batch ")
    assert done.summary["story"]["headline"].endswith("; 1 cell failed")
    healed.touch()
    again = servetop("sweep", str(file), "--json", "--resume")
    assert "1 of 3 cells left" in again.err
    assert again.code in RAN, again.err
    assert cells(again.summary) == [(size, 20.0, 6, "whole") for size in (8, 16, 32)]
    assert "nothing to resume" in servetop("sweep", str(file), "--json", "--resume").err


def test_an_engine_that_dies_in_a_cell_is_started_again_for_the_next_one(servetop: Servetop, grid: WriteGrid) -> None:
    done = servetop("sweep", str(grid("--dies-at 16", rates=(20, 40))), "--json")
    assert done.code == 3
    assert [cell[3] for cell in cells(done.summary)] == ["whole", "whole", "failed", "failed", "whole", "whole"]
    assert done.complaint.startswith("vLLM exited with status 7")


def test_the_first_batch_size_may_fail(servetop: Servetop, grid: WriteGrid) -> None:
    done = servetop("sweep", str(grid("--no-start 8")), "--json")
    assert done.code == 3
    assert [cell[3] for cell in cells(done.summary)] == ["failed", "whole", "whole"]


def test_a_sweep_ends_when_the_engine_starts_for_none_of_three_batch_sizes(servetop: Servetop, grid: WriteGrid) -> None:
    sizes = (8, 16, 24, 32, 40)
    done = servetop("sweep", str(grid(f"--no-start {' '.join(map(str, sizes))}", batches=sizes)), "--json")
    assert done.code == 3
    (recording,) = servetop.folder.glob("*.servetop")
    reader = RecordingReader.open(recording)
    assert [stage.max_num_seqs for stage in reader.stages() if stage.failure] == [8, 16, 24]
    reader.close()
    shown = servetop("summary", str(recording)).out
    assert shown.count("vLLM did not start: out of GPU memory") >= 3
    again = servetop("sweep", str(grid(f"--no-start {' '.join(map(str, sizes))}", batches=sizes)), "--json", "--resume")
    assert "5 of 5 cells left" in again.err


def test_a_sweep_of_which_no_engine_starts_has_a_table_of_failed_cells(servetop: Servetop, grid: WriteGrid) -> None:
    done = servetop("sweep", str(grid("--no-start 8 16", batches=(8, 16))), "--headless")
    assert done.code == 3
    assert "Failed cells" in done.out
    for size in (8, 16):
        assert f"20 req/s · batch {size} failed: vLLM did not start: out of GPU memory" in done.out


def test_the_tables_name_failed_cells_and_their_reason(servetop: Servetop, grid: WriteGrid) -> None:
    done = servetop("sweep", str(grid("--no-start 16", rates=(20, 40))), "--headless")
    table = done.out[done.out.index("Output throughput, tok/s (batch") :].splitlines()
    (row,) = (line.split() for line in table[3:6] if line.split()[0] == "16")
    assert row == ["16", "failed", "failed"]
    assert "20 req/s · batch 16 failed: vLLM did not start: out of GPU memory" in done.out
