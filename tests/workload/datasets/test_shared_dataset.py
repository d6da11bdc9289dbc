"""All cells of a sweep read one data file once, and each begins with its first row."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.workload.build import arrivals_of, prompts_for
from servetop.workload.datasets import shared_dataset
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.stages.stage_draws import StageDraws

TEXTS = "prompt\nOne?\nTwo?\n\xff\nThree?\n"
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:0{second}.0,{100 + second},{10 + second}\n" for second in range(5)
)


def cells(workload: WorkloadConfig, dataset: SharedDataset, *counts: int) -> list[list[tuple[str, int]]]:
    """The texts and lengths of the prompts that cells take, one after another."""
    taken = []
    for cell, count in enumerate(counts):
        prompts = itertools.islice(prompts_for(workload, (3, cell), dataset=dataset).prompts(), count)
        taken.append([(prompt.text, prompt.input_tokens) for prompt in prompts])
    return taken


@pytest.fixture(params=["csv", "azure"])
def workload(request: pytest.FixtureRequest, tmp_path: Path) -> WorkloadConfig:
    path = tmp_path / "data.csv"
    path.write_text(TEXTS if request.param == "csv" else TRACE, encoding="latin-1")
    endpoint = "chat" if request.param == "csv" else "completions"
    return WorkloadConfig(dataset=request.param, dataset_path=str(path), endpoint=endpoint)


def test_each_cell_begins_with_the_first_row_of_a_file_that_was_read_once(workload: WorkloadConfig) -> None:
    dataset = SharedDataset(workload)
    (first,) = cells(workload, dataset, 2)
    (alone,) = cells(workload, SharedDataset(workload), 9)
    Path(workload.dataset_path).unlink()
    second, third = cells(workload, dataset, 2, 2)
    assert first == second == third == alone[:2]
    assert dataset.skipped.texts() == []


def test_a_cell_that_needs_more_rows_than_those_before_it_continues_the_same_pass(workload: WorkloadConfig) -> None:
    dataset = SharedDataset(workload)
    (alone,) = cells(workload, SharedDataset(workload), 9)
    assert cells(workload, dataset, 1, 9, 4) == [alone[:1], alone, alone[:4]]
    bad = [text for text in dataset.skipped.texts() if "bad row" in text]
    assert len(bad) == (workload.dataset == "csv")
    assert all("1 bad row of the dataset was skipped" in text for text in bad)


@pytest.mark.parametrize("kept", [1, 1000])
def test_rows_beyond_those_kept_are_read_from_the_file(
    workload: WorkloadConfig, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_dataset, "MOST_KEPT", kept)
    dataset = SharedDataset(workload)
    (alone,) = cells(workload, SharedDataset(workload), 9)
    assert cells(workload, dataset, 5, 9, 7, 1) == [alone[:5], alone, alone[:7], alone[:1]]
    assert sum("1 bad row" in text for text in dataset.skipped.texts()) == (workload.dataset == "csv")


def test_a_file_that_changed_is_read_again_by_the_next_cell_and_named(workload: WorkloadConfig) -> None:
    dataset, path = SharedDataset(workload), Path(workload.dataset_path)
    (first,) = cells(workload, dataset, 2)
    lines = path.read_text(encoding="latin-1").splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]), encoding="latin-1")
    (second,) = cells(workload, dataset, 2)
    (alone,) = cells(workload, SharedDataset(workload), 2)
    assert second == alone != first
    assert any(f"{path} changed while the load ran" in text for text in dataset.skipped.texts())


def test_times_and_prompts_of_a_trace_come_from_one_reading(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    workload = WorkloadConfig(dataset="azure", dataset_path=str(path), arrivals="trace", trace_rate=1.0)
    dataset = SharedDataset(workload)
    arrivals = arrivals_of(workload, dataset)
    assert cells(workload, dataset, 9)
    path.unlink()
    for cell in range(2):
        times = arrivals(StageDraws(arrivals=(3,), prompts=(0, cell)))(1.0).due_times()
        assert [round(at) for at in itertools.islice(times, 4)] == [0, 1, 2, 3]
