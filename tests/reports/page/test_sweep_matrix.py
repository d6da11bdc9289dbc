"""The tables of a sweep have one cell for each setting and load, and mark the best one."""

from __future__ import annotations

import contextlib
import lzma
import re
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.sweep.reference_figures import PublishedSource
from servetop.analysis.sweep.sweep_cell import CellReference
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.sweep_matrix import recounted_table, sweep_part
from servetop.reports.summary.summary import run_summary

GOLDEN = Path(__file__).parents[2] / "golden" / "h200_sweep.servetop.xz"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    path = tmp_path_factory.mktemp("sweep") / "h200_sweep.servetop"
    path.write_bytes(lzma.decompress(GOLDEN.read_bytes()))
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return run_summary(reader)


def test_every_cell_is_in_every_table_and_the_best_one_is_marked(summary: RunSummary) -> None:
    text, sweep = sweep_part(summary.sweep), summary.sweep
    assert text is not None
    assert sweep is not None
    tables = re.findall(r"<table>.*?</table>", text)
    assert len(tables) == (5 if sweep.objectives else 3)
    for table in tables:
        filled = [each for each in re.findall("<td>(.*?)</td>", table) if each]
        assert len(filled) == len(sweep.cells)
        assert table.count("★") == 1
    assert sweep.best is not None
    (tokens,) = [each for each in tables if "Output tokens/s" in each]
    assert f"<strong>{formats.number(sweep.best.output_throughput)} ★" in tokens


def test_the_script_gets_the_stages_and_seconds_of_each_cell(summary: RunSummary) -> None:
    text, sweep = recounted_table(summary), summary.sweep
    assert text is not None
    assert sweep is not None
    seconds = {each.stage: each.measured.requests.duration for each in summary.stages}
    found = re.findall('data-recounted-stages="(.*?)" data-recounted-seconds="(.*?)"', text)
    given = {tuple(map(int, stages.split())): [float(each) for each in times.split()] for stages, times in found}
    assert given == {
        cell.stages: [pytest.approx(seconds[stage], abs=1e-6) for stage in cell.stages] for cell in sweep.cells
    }
    assert f'data-kept-share="{sweep.kept_share}"' in text


def test_other_runs_have_no_such_section(summary: RunSummary) -> None:
    assert sweep_part(None) is None
    assert recounted_table(replace(summary, sweep=None)) is None


def test_published_and_simulated_figures_stand_beside_the_measured_ones(summary: RunSummary) -> None:
    assert summary.sweep is not None
    first, *others = summary.sweep.cells
    beside = CellReference(output_throughput=512.0, ratio=0.98, preemptions=None)
    source = PublishedSource(source="A study, <b>Table 1</b>", set_up="", mean_ratio=0.98)
    cells = (replace(first, published=beside, simulated=beside), *others)
    text = sweep_part(replace(summary.sweep, cells=cells, published=source))
    assert text is not None
    (table,) = re.findall(r"<table><caption>Published, measured and simulated output tok/s</caption>.*?</table>", text)
    measured = formats.in_full(first.output_throughput)
    row = "".join(f"<td>{each}</td>" for each in ("512", measured, "512", "0.98", "0.98"))
    assert f"{first.name}</th>{row}" in table
    assert "published: A study, &lt;b&gt;Table 1&lt;/b&gt;" in text
