"""A sweep killed by SIGKILL and resumed, and a stage repeated by key, keep each cell's figures with its batch size."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from servetop.core.events import Action
from tests.harness import RAN, Servetop, opened, wait_for

pytestmark = pytest.mark.integration

GRID = """
engine = "sim"
max_num_seqs = [2, 8]
request_rate = [20, 40]
num_prompts = 24
random_input_len = 8
random_output_len = 4
"""
CELLS = [(2, 20.0), (2, 40.0), (8, 20.0), (8, 40.0)]


def counted(summary: dict[str, object]) -> list[tuple[object, ...]]:
    stages = summary["stages"]
    assert isinstance(stages, list)
    names = ("max_num_seqs", "request_rate", "completed", "outcome")
    return sorted(tuple(stage[name] for name in names) for stage in stages if stage["counted"])


def compared(servetop: Servetop, a: Path, b: Path) -> dict[str, object]:
    done = servetop("compare", str(a), str(b), "--json")
    assert done.code == 0, done.err
    report: dict[str, object] = json.loads(done.out)["comparisons"][0]
    return report


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_and_resumed_sweep_has_the_cells_of_one_that_was_not(
    servetop: Servetop, tmp_path: Path, seed: int
) -> None:
    grid, clean, resumed = tmp_path / "grid.toml", tmp_path / "clean.servetop", tmp_path / "resumed.servetop"
    grid.write_text(GRID)
    assert servetop("sweep", str(grid), "--headless", "--record", str(clean)).code in RAN
    ticks = random.Random(seed).randint(6, 16)
    with servetop.started("sweep", str(grid), "--headless", "--record", str(resumed)) as process:
        wait_for(lambda: _ticks(resumed) >= ticks or process.poll() is not None, seconds=60, what=f"tick {ticks}")
        process.kill()
        process.communicate(timeout=60)
    done = servetop("sweep", str(grid), "--json", "--resume", "--record", str(resumed))
    assert done.code in RAN, done.err
    assert counted(done.summary) == [(*cell, 24, "whole") for cell in CELLS]
    assert done.summary["completed"] == 24 * len(CELLS)
    report = compared(servetop, clean, resumed)
    assert (report["only_a"], report["only_b"]) == ([], [])
    stages = report["stages"]
    assert isinstance(stages, list)
    assert len(stages) == len(CELLS)
    assert report["differences"] == []


def test_a_stage_repeated_by_key_keeps_the_batch_size_of_each_stage(servetop: Servetop, tmp_path: Path) -> None:
    path, ramp = tmp_path / "repeated.servetop", "8@16:3s,8@64:3s,8@128:3s"
    with servetop.started("--headless", "--json", "--ramp", ramp, "--record", str(path)) as process:
        wait_for(lambda: _stages(path) >= 2, seconds=30, what="the second stage")
        reader = opened(path)
        assert reader is not None
        reader.send(Action.PREVIOUS_STAGE)
        reader.close()
        out, _ = process.communicate(timeout=120)
    stages = [(each["max_num_seqs"], each["outcome"], each["counted"]) for each in json.loads(out)["stages"]]
    assert stages == [
        (16, "whole", True), (64, "cut-short", False), (16, "whole", True), (64, "whole", True), (128, "whole", True),
    ]  # fmt: skip


def _ticks(path: Path) -> int:
    reader = opened(path)
    if reader is None:
        return 0
    try:
        return len(reader.ticks())
    finally:
        reader.close()


def _stages(path: Path) -> int:
    reader = opened(path)
    if reader is None:
        return 0
    try:
        return sum(stage.request_rate is not None for stage in reader.stages())
    finally:
        reader.close()
