"""A data file that is cut short, emptied or deleted while it is read does not end the load."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.workload.datasets.catalogue import texts_of, trace_of
from servetop.workload.datasets.rows import SkippedRows

ROWS = 50_000
"""Rows of a file that is larger than the buffers through which it is read."""


def source(path: Path, dataset: str) -> Callable[[SkippedRows], itertools.islice[object]]:
    workload = WorkloadConfig(dataset=dataset, dataset_path=str(path))
    found = texts_of(workload) or trace_of(workload, seed=1)
    assert found is not None
    return lambda skipped: itertools.islice(found.endless(skipped), 10**9)


def body(dataset: str, rows: int) -> str:
    if dataset == "custom":
        return "".join(f'{{"prompt": "Question {number}?"}}\n' for number in range(rows))
    return "arrival_s,input,output\n" + "".join(f"{number},10,5\n" for number in range(rows))


@pytest.mark.parametrize("dataset", ["custom", "plain"])
@pytest.mark.parametrize(
    "loss", [Path.unlink, lambda path: path.write_text(""), lambda path: path.write_text("<html>")]
)
def test_a_file_that_is_lost_between_two_passes_is_repeated(
    dataset: str, loss: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    path.write_text(body(dataset, 3))
    skipped = SkippedRows()
    rows = source(path, dataset)(skipped)
    for _ in range(4):  # three rows, and one of the second pass
        next(rows)
    loss(path)
    times = [getattr(next(rows), "at", None) or 0.0 for _ in range(20)]
    assert times == sorted(times)
    assert (skipped.skipped, skipped.first_skipped.partition(": the first ")[2]) == (1, "3 rows are repeated")


@pytest.mark.parametrize("dataset", ["custom", "plain"])
def test_a_file_that_is_replaced_between_two_cells_is_named_once(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text(body(dataset, 3))
    skipped = SkippedRows()
    for _ in range(2):  # two cells of a sweep
        assert next(source(path, dataset)(skipped))
    assert skipped.texts() == []
    for _ in range(2):
        path.write_text(path.read_text() + body(dataset, 9).splitlines(keepends=True)[-1])
        assert next(source(path, dataset)(skipped))
    assert skipped.texts() == [f"{path} changed while the load ran: later requests are those of its new content"]
    assert skipped.texts() == []


@pytest.mark.parametrize("dataset", ["custom", "plain"])
def test_a_file_of_one_row_that_is_lost_is_named_in_the_singular(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text(body(dataset, 1))
    skipped = SkippedRows()
    rows = source(path, dataset)(skipped)
    next(rows)
    path.unlink()
    assert next(rows)
    assert skipped.first_skipped.endswith(": the first row is repeated")


@pytest.mark.parametrize("dataset", ["custom", "plain"])
def test_a_file_that_is_cut_short_while_it_is_read_is_used_as_far_as_it_goes(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text(body(dataset, ROWS))
    skipped = SkippedRows()
    rows = source(path, dataset)(skipped)
    next(rows)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    assert sum(1 for _ in itertools.islice(rows, 2 * ROWS)) == 2 * ROWS
