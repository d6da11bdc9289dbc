"""Prompts of a plug-in are read as those of a file are, and a broken plug-in is a line that names it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import PlugInError, UsageError
from servetop.workload.datasets.catalogue import added_datasets, texts_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.dataset_options import check_dataset_options
from servetop.workload.request_lengths import request_lengths
from servetop.workload.validation import resolve_workload
from tests.plug_in_package import install

LOAD = WorkloadConfig(dataset="acme", output_len=9)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def made(expression: str) -> None:
        text = f"from servetop.api.plug_ins import *\nMADE = {expression}\n"
        points = {"acme": "acme_data:MADE", "random": "acme_data:NOT_USED"}
        install(tmp_path / "site", monkeypatch, {"servetop.datasets": points}, {"acme_data": text})

    return made


def test_its_prompts_are_sent_again_and_again_with_their_lengths(acme: Callable[[str], None]) -> None:
    acme('PromptDataset(prompts=lambda path: ["one", DatasetPrompt("two", 5)])')
    assert added_datasets() == ("acme",)
    workload, _ = resolve_workload(LOAD)
    texts = texts_of(workload)
    assert texts is not None
    rows = list(itertools.islice(texts.endless(), 3))
    assert [(each.text, each.output_tokens) for each in rows] == [("one", None), ("two", 5), ("one", None)]
    lengths = itertools.islice(request_lengths(workload, (1,)), 3)
    assert [each.output_tokens for each in lengths] == [9, 5, 9]


def test_it_gets_the_path_that_it_asks_for(tmp_path: Path, acme: Callable[[str], None]) -> None:
    acme("PromptDataset(prompts=lambda path: path.read_text().split(), reads_path=True)")
    (tmp_path / "questions").write_text("what why", encoding="utf-8")
    texts = texts_of(WorkloadConfig(dataset="acme", dataset_path=str(tmp_path / "questions")))
    assert texts is not None
    assert [each.text for each in texts.rows()] == ["what", "why"]
    with pytest.raises(UsageError, match="--dataset-name acme reads a file: give --dataset-path"):
        texts_of(LOAD)
    with pytest.raises(UsageError, match="nowhere is not a file: check --dataset-path"):
        texts_of(WorkloadConfig(dataset="acme", dataset_path="nowhere"))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("7", "expected a text or a DatasetPrompt, found int"),
        ("' '", "column 'text': expected a prompt, found ' '"),
        ("DatasetPrompt('a', -1)", "column 'output_tokens': expected a whole number of tokens, 1 or more, found -1"),
        ("DatasetPrompt('\\ud83d')", "column 'text': expected text in UTF-8"),
    ],
)
def test_a_bad_prompt_is_refused_or_left_out(value: str, error: str, acme: Callable[[str], None]) -> None:
    acme(f'PromptDataset(prompts=lambda path: ["good", {value}])')
    with pytest.raises(UsageError) as raised:
        resolve_workload(LOAD)
    assert error in str(raised.value)
    texts, skipped = texts_of(LOAD), SkippedRows()
    assert texts is not None
    assert [each.text for each in texts.rows(skipped)] == ["good"]
    assert skipped.skipped == 1


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("1 / 0", "import failed: ZeroDivisionError"),
        ("7", "is int: it must be a PromptDataset of servetop.api.plug_ins"),
        ("PromptDataset(prompts=lambda path: 1 / 0)", "prompts failed: ZeroDivisionError"),
        ("PromptDataset(prompts=lambda path: 7)", "prompts failed: TypeError: 'int' object is not iterable"),
    ],
)
def test_a_broken_dataset_is_named_before_the_run(expression: str, error: str, acme: Callable[[str], None]) -> None:
    acme(expression)
    with pytest.raises(PlugInError) as raised:
        resolve_workload(LOAD)
    assert str(raised.value).startswith("dataset 'acme' of servetop-acme 1.0 (acme_data:MADE)")
    assert error in str(raised.value)


def test_a_dataset_without_prompts_is_refused(acme: Callable[[str], None]) -> None:
    acme("PromptDataset(prompts=lambda path: [])")
    with pytest.raises(UsageError, match="dataset acme has no usable prompts"):
        resolve_workload(LOAD)


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"input_len": 7}, "--input-len: the prompts of acme have lengths of their own"),
        ({"prefix_len": 7}, "--random-prefix-len: the texts of acme"),
        ({"dataset_column": "x"}, "--dataset-column: acme has no column to choose"),
    ],
)
def test_options_without_effect_are_refused(option: dict[str, object], error: str, acme: Callable[[str], None]) -> None:
    acme('PromptDataset(prompts=lambda path: ["one"])')
    with pytest.raises(UsageError, match=error):
        check_dataset_options(WorkloadConfig(dataset="acme", **option))  # type: ignore[arg-type]
