"""The tables of a sweep have one cell for each setting and load, and mark the best one."""

from __future__ import annotations

import contextlib
import lzma
import re
from pathlib import Path

import pytest

from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.sweep_matrix import sweep_part
from servetop.reports.summary.summary import run_summary

GOLDEN = Path(__file__).parents[2] / "golden" / "h200_sweep.servetop.xz"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> SweepVerdict:
    path = tmp_path_factory.mktemp("sweep") / "h200_sweep.servetop"
    path.write_bytes(lzma.decompress(GOLDEN.read_bytes()))
    with contextlib.closing(RecordingReader.open(path)) as reader:
        found = run_summary(reader).sweep
    assert found is not None
    return found


def test_every_cell_is_in_every_table_and_the_best_one_is_marked(sweep: SweepVerdict) -> None:
    text = sweep_part(sweep)
    assert text is not None
    tables = re.findall(r"<table>.*?</table>", text)
    assert len(tables) == (5 if sweep.objectives else 3)
    for table in tables:
        filled = [each for each in re.findall("<td>(.*?)</td>", table) if each]
        assert len(filled) == len(sweep.cells)
        assert table.count("★") == 1
    assert sweep.best is not None
    (tokens,) = [each for each in tables if "Output tokens/s" in each]
    assert f"<strong>{formats.number(sweep.best.output_throughput)} ★" in tokens


def test_other_runs_have_no_such_section() -> None:
    assert sweep_part(None) is None
