"""Rows of a sweep end at the first load that meets a condition; what is skipped does not depend on the speed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

HEAD = """
until = ["num_prompts>20"]
random_input_len = 8
random_output_len = 2
drain_timeout = "60s"
timeout = 60
"""
CELLS = {20: 6, 40: 24, 60: 6, 80: 24}
"""Requests by request rate: the load of 40/s is the first one with more than 20."""


def grid(folder: Path, head: str = HEAD, *, repeats: int = 1, order: str = "fewest-restarts") -> str:
    cells = "".join(f"[[cell]]\nrequest_rate = {rate}\nnum_prompts = {count}\n" for rate, count in CELLS.items())
    file = folder / "grid.toml"
    file.write_text(f'{head}repeats = {repeats}\norder = "{order}"\n{cells}')
    return str(file)


def rates(rows: list[dict[str, Any]]) -> list[tuple[float, int]]:
    return sorted((row["request_rate"], row["repeat"]) for row in rows)


def test_the_loads_above_the_one_that_meets_a_condition_are_skipped(servetop: Servetop, tmp_path: Path) -> None:
    file = grid(tmp_path)
    done = servetop("sweep", file, "--json")
    assert done.code in RAN, done.err
    assert rates(done.summary["stages"]) == [(20, 0), (40, 0)]
    assert rates(done.summary["skipped"]) == [(60, 0), (80, 0)]
    assert {each["reason"] for each in done.summary["skipped"]} == {"num_prompts 24 > 20 at 40 req/s"}
    assert "2 cells skipped: num_prompts 24 > 20 at 40 req/s" in done.err
    (recording,) = servetop.folder.glob("*.servetop")
    assert "2 cells skipped: num_prompts 24 > 20 at 40 req/s" in servetop("summary", str(recording)).out
    again = servetop("sweep", file, "--resume", "--json")
    assert "4 cells, of which 2 were skipped, are in" in again.err
    assert json.loads(again.out)["skipped"] == done.summary["skipped"]


def test_a_row_ends_after_all_repeats_of_a_cell(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("sweep", grid(tmp_path, repeats=2), "--json")
    assert rates(done.summary["stages"]) == [(20, 0), (20, 1), (40, 0), (40, 1)]
    assert rates(done.summary["skipped"]) == [(60, 0), (60, 1), (80, 0), (80, 1)]


@pytest.mark.parametrize("order", ["shuffled", "ABBA"])
def test_in_any_order_no_higher_load_follows_one_that_ended_the_row(
    servetop: Servetop, tmp_path: Path, order: str
) -> None:
    done = servetop("sweep", grid(tmp_path, repeats=2, order=order), "--json")
    assert done.code in RAN, done.err
    measured = [stage["request_rate"] for stage in sorted(done.summary["stages"], key=lambda each: each["start"])]
    for place, rate in enumerate(measured):
        ended = [each for each in measured[:place] if CELLS[int(each)] > 20]
        assert rate <= min(ended, default=80)
    every = rates([*done.summary["stages"], *done.summary["skipped"]])
    assert every == [(rate, repeat) for rate in CELLS for repeat in (0, 1)]


def test_a_condition_that_no_cell_meets_skips_nothing(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("sweep", grid(tmp_path, HEAD.replace(">20", ">24")), "--json")
    assert len(done.summary["stages"]) == len(CELLS)
    assert "skipped" not in done.summary


def test_a_condition_that_cannot_be_judged_is_refused_before_the_run(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("sweep", grid(tmp_path, HEAD.replace("num_prompts>20", "goodput<95%")), "--json")
    assert done.code == 2
    assert "until: 'goodput<95%' needs objectives" in done.complaint
    assert not list(servetop.folder.glob("*.servetop"))


def test_a_dry_run_says_that_rows_may_end(servetop: Servetop, tmp_path: Path) -> None:
    file = grid(tmp_path)
    assert "num_prompts>20: a load that meets one ends its row" in servetop("sweep", file, "--dry-run").out
    assert json.loads(servetop("sweep", file, "--dry-run", "--json").out)["until"] == ["num_prompts>20"]


def test_a_skipped_cell_is_recorded_with_what_it_sets(servetop: Servetop, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(HEAD + "num_prompts = 24\n[grid]\nrandom_input_len = [8, 16]\nrequest_rate = [40, 80]\n")
    assert servetop("sweep", str(file), "--json").code in RAN
    (recording,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        skipped, planned = reader.skipped_cells(), reader.header.config.stages
        assert list(reader.poll().skipped) == skipped
    high = [cell for cell in planned if cell.request_rate == 80]
    assert [each.settings for each in skipped] == ['{"input_len":8}', '{"input_len":16}']
    assert [[each.is_of(cell) for cell in high] for each in skipped] == [[True, False], [False, True]]


def test_a_skipped_cell_is_that_of_one_repeat() -> None:
    cell = StageConfig(request_rate=8.0, max_num_seqs=4, repeat=1)
    event = SkippedCell.of(cell, at=1.0, stage=0, reason="failed 1 > 0 at 4 req/s")
    assert event.is_of(cell)
    assert not event.is_of(StageConfig(request_rate=8.0, max_num_seqs=4))
