"""Thresholds that each cell of a sweep must meet, from the file to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness import Finished, Servetop

pytestmark = pytest.mark.integration

CELLS = """
random_input_len = 8
random_output_len = 2
[[cell]]
request_rate = 40
num_prompts = 6
[[cell]]
request_rate = 60
num_prompts = 12
"""


def sweep(servetop: Servetop, folder: Path, threshold: str, *words: str, cells: str = CELLS) -> Finished:
    file = folder / "grid.toml"
    file.write_text(f'cell_threshold = ["{threshold}"]\n{cells}')
    return servetop("sweep", str(file), *words)


def decides(done: Finished, code: int, reason: str) -> bool:
    """Whether a sweep ended so, or with a client that was too slow for this machine, which comes first."""
    busy = done.code == 99 and done.complaint.startswith("the client was the bottleneck")
    return (done.code == code and done.complaint.startswith(reason)) or busy


def test_a_cell_that_misses_its_threshold_fails_the_sweep(servetop: Servetop, tmp_path: Path) -> None:
    done = sweep(servetop, tmp_path, "num_prompts<=6", "--json")
    assert done.code == 99
    reason = "1 of 2 cells misses num_prompts ≤ 6: 60 req/s: num_prompts is 12, must be ≤ 6"
    assert done.complaint.startswith(reason)
    found = done.summary["cell_thresholds"]
    assert [found[key] for key in ("thresholds", "kept", "missed", "not_decided")] == [["num_prompts<=6"], 1, 1, 0]
    assert [(each["request_rate"], each["outcome"]) for each in found["cells"]] == [(40, "kept"), (60, "missed")]
    assert done.summary["story"]["headline"].startswith("1 of 2 cells keep num_prompts ≤ 6; ")
    (recording,) = servetop.folder.glob("*.servetop")
    shown = servetop("summary", str(recording)).out
    assert "thresholds 1 of 2 cells keep num_prompts ≤ 6\n" in shown
    assert "        !  60 req/s: num_prompts is 12, must be ≤ 6\n" in shown
    assert json.loads(servetop("summary", str(recording), "--json").out)["cell_thresholds"] == found


def test_a_percentile_of_few_requests_decides_nothing(servetop: Servetop, tmp_path: Path) -> None:
    done = sweep(servetop, tmp_path, "p99_ttft_ms<=0.001", "--json")
    assert decides(done, 98, "cannot tell whether 2 of 2 cells keep p99 TTFT ≤ 0.001 ms: 40 req/s: p99 TTFT is ")
    assert {each["outcome"] for each in done.summary["cell_thresholds"]["cells"]} == {"not decided"}


def test_a_sweep_whose_cells_keep_their_threshold_has_no_reason(servetop: Servetop, tmp_path: Path) -> None:
    done = sweep(servetop, tmp_path, "num_prompts<=12", "--json")
    assert done.code == 0 or decides(done, 0, "")
    assert done.summary["cell_thresholds"]["kept"] == 2


def test_one_cell_is_judged_too(servetop: Servetop, tmp_path: Path) -> None:
    done = sweep(servetop, tmp_path, "num_prompts<=6", "--headless", cells="request_rate = 40\nnum_prompts = 7\n")
    assert done.code == 99
    assert "thresholds 0 of 1 cell keeps num_prompts ≤ 6" in done.out


def test_an_unknown_figure_is_refused_before_the_run(servetop: Servetop, tmp_path: Path) -> None:
    done = sweep(servetop, tmp_path, "p99_ttft<=500", "--headless")
    assert done.code == 2
    assert (
        "cell_threshold: 'p99_ttft<=500': unknown summary key 'p99_ttft': valid keys are p99_ttft_ms" in done.complaint
    )
    assert not list(servetop.folder.glob("*.servetop"))


def test_a_dry_run_lists_the_thresholds(servetop: Servetop, tmp_path: Path) -> None:
    assert (
        "thresholds num_prompts<=6: each cell must meet them"
        in sweep(servetop, tmp_path, "num_prompts<=6", "--dry-run").out
    )
    listed = json.loads(sweep(servetop, tmp_path, "num_prompts<=6", "--dry-run", "--json").out)
    assert listed["cell_threshold"] == ["num_prompts<=6"]
