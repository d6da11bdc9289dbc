"""Prompts from text datasets and corpora."""

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import prompts_for
from servetop.workload.datasets.catalogue import texts_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.prompts.dataset_prompts import corpus_text
from servetop.workload.validation import resolve_workload

CONVERSATIONS_FILE = [
    {"id": "a", "conversations": [{"from": "human", "value": "Who " * 8}, {"from": "gpt", "value": "I am " * 10}]},
    {"id": "b", "conversations": [{"from": "human", "value": "No answer came"}]},
    {"id": "c", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello, who are you?"}]},
    {"id": "d", "conversations": [{"from": "human", "value": "x" * 4100}, {"from": "gpt", "value": "y" * 100}]},
    {"id": "e", "conversations": [{"from": "human", "value": "What time is it?"}, {"from": "gpt", "value": "z" * 400}]},
]


def taken(config: WorkloadConfig, count: int, **more: Any) -> list[Prompt]:
    return list(itertools.islice(prompts_for(config, (5, 0), **more).prompts(), count))


def test_sharegpt_prompts_are_first_questions_with_the_lengths_of_their_answers(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CONVERSATIONS_FILE, indent=1))
    config = WorkloadConfig(dataset="sharegpt", dataset_path=str(path))
    skipped = SkippedRows()
    prompts = taken(config, 3, dataset=SharedDataset(config, skipped))
    assert [prompt.text[:8] for prompt in prompts] == ["Who Who ", "What tim", "Who Who "]
    assert [prompt.output_tokens for prompt in prompts] == [13, 100, 13]
    assert prompts[0].token_ids is None
    assert skipped.skipped == 0
    assert sorted(skipped.left_out.values()) == [1, 2]
    fixed = replace(config, lengths="fixed:output=9")
    assert [prompt.output_tokens for prompt in taken(fixed, 2)] == [9, 9]


def test_a_truncated_array_ends_with_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "torn.json"
    path.write_text(json.dumps(CONVERSATIONS_FILE)[:-60])
    skipped = SkippedRows()
    texts = texts_of(WorkloadConfig(dataset="sharegpt", dataset_path=str(path)))
    assert texts is not None
    assert len(list(texts.rows(skipped))) == 1
    assert skipped.skipped == 1
    with pytest.raises(UsageError, match=r"torn.json, line 1, row 5, not a complete JSON value: '\{\"id\": \"e\""):
        resolve_workload(WorkloadConfig(dataset="sharegpt", dataset_path=str(path)))


def test_json_lines_and_tables_are_read_by_column(tmp_path: Path) -> None:
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.csv"
    lines.write_text('{"prompt": "One?", "output_tokens": 7}\n\n{"prompt": "Two, and more?"}\n')
    table.write_text('id,question,output_len\n1,"One,\nin two lines?",7\n2,Two?,\n')
    prompts = taken(WorkloadConfig(dataset="custom", dataset_path=str(lines), output_len=50), 3)
    assert [(each.text, each.input_tokens, each.output_tokens) for each in prompts] == [
        ("One?", 1, 7), ("Two, and more?", 4, 50), ("One?", 1, 7),
    ]  # fmt: skip
    config = WorkloadConfig(dataset="csv", dataset_path=str(table), dataset_column="question", output_len=50)
    assert [(each.text, each.output_tokens) for each in taken(config, 2)] == [("One,\nin two lines?", 7), ("Two?", 50)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "custom",
            '{"question": "x", "id": 1}\n',
            "data: no column 'prompt': it has question, id: choose with --dataset-column q",
        ),
        (
            "csv",
            "Question;id\nHi;1\n",
            "no column 'prompt': it has Question, id: choose with --dataset-column Question",
        ),
        ("csv", "id,prompt\n1,Hello, world\n", "line 2, 3 values for 2 columns: a value is not quoted: fix it"),
        ("csv", 'prompt\n"Hello\nworld\n', "line 2, not a row of a table"),
        ("custom", '{"prompt": "x"}\nplain text\n', "line 2, not a complete JSON value: 'plain text'"),
        ("custom", '[{"prompt": "x"}, {"prompt": 5}]', "line 1, row 2, column 'prompt': expected a prompt, found 5"),
        (
            "custom",
            '{"prompt": "x \\ud83d"}\n',
            r"line 1, column 'prompt': expected text in UTF-8 .* found 'x \\ud83d'",
        ),
        ("custom", '{"prompt": "x"}\n{"prompt": 5}\n', "line 2, column 'prompt': expected a prompt, found 5"),
        ("custom", '{"prompt": "x", "output_tokens": 0}\n', "column 'output_tokens': expected a whole number"),
        ("custom", '{"prompt": " "}\n', "expected a prompt"),
        ("csv", "prompt\n", "has no usable prompts"),
        ("custom", "", "has no usable prompts"),
    ],
)
def test_a_row_without_a_prompt_is_rejected(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / "data"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        resolve_workload(WorkloadConfig(dataset=name, dataset_path=str(path)))


def test_a_file_without_usable_rows_says_why(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CONVERSATIONS_FILE[1:4]))
    with pytest.raises(UsageError, match=r"no usable prompts: 1 row .* fewer than two turns; 2 rows .* vLLM's filter"):
        resolve_workload(WorkloadConfig(dataset="sharegpt", dataset_path=str(path)))


def test_a_file_without_the_column_of_the_prompts_proposes_one_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"my question": "x"}\n{"my question": "y"}\n')
    config = WorkloadConfig(dataset="custom", dataset_path=str(path), skip_bad_rows=True)
    with pytest.raises(
        UsageError, match=r"2 bad rows of the dataset were skipped; .* choose with .*-column 'my question'$"
    ):
        resolve_workload(config)


def test_parquet_and_saved_datasets_name_the_extra_that_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1\0\0\0\0PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"a.parquet needs pyarrow: install .* 'servetop\[datasets\]'"):
        resolve_workload(WorkloadConfig(dataset="parquet", dataset_path=str(path)))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"has no \.parquet"):
        resolve_workload(WorkloadConfig(dataset="hf", dataset_path=str(empty)))


def test_parquet_and_saved_datasets_are_read_by_column(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"prompt": ["One?", "Two?"], "output_tokens": [3, 4]})
    parquet.write_table(table, tmp_path / "a.parquet")
    folder = tmp_path / "saved" / "train"
    folder.mkdir(parents=True)
    with (
        pyarrow.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pyarrow.ipc.new_stream(sink, table.schema) as stream,
    ):
        stream.write_table(table)
    for name, path in (("parquet", tmp_path / "a.parquet"), ("hf", tmp_path / "saved")):
        prompts = taken(WorkloadConfig(dataset=name, dataset_path=str(path)), 3)
        assert [(each.text, each.output_tokens) for each in prompts] == [("One?", 3), ("Two?", 4), ("One?", 3)]


@pytest.mark.parametrize("name", ["sonnet", "shakespeare"])
def test_passages_of_a_corpus_have_four_characters_a_token_and_wrap_around(name: str) -> None:
    config = WorkloadConfig(dataset=name, input_len=300, output_len=7, prefix_len=20)
    prompts = taken(config, 30)
    assert prompts == taken(config, 30)
    assert {len(prompt.text) for prompt in prompts} == {4 * 320}
    assert {prompt.text[:80] for prompt in prompts} == {corpus_text(name)[:80]}
    assert len({prompt.text for prompt in prompts}) > 25
    whole = WorkloadConfig(dataset="sonnet", input_len=6000)
    assert len(taken(whole, 1)[0].text) == 24_000  # longer than the text


def test_passages_of_token_ids_have_the_exact_length() -> None:
    config = WorkloadConfig(dataset="sonnet", input_len=30, prefix_len=5)
    prompts = taken(config, 5, corpus_ids=tuple(range(100)))
    assert {len(prompt.token_ids or ()) for prompt in prompts} == {35}
    assert {(prompt.token_ids or ())[:5] for prompt in prompts} == {(0, 1, 2, 3, 4)}


def test_shared_prefixes_are_drawn_from_a_pool_and_add_to_the_length() -> None:
    prompts = taken(WorkloadConfig(input_len=10, prefix_len=40, num_prefixes=3), 60)
    assert {len(prompt.token_ids or ()) for prompt in prompts} == {50}
    assert len({(prompt.token_ids or ())[:40] for prompt in prompts}) == 3
    assert len({(prompt.token_ids or ())[40:] for prompt in prompts}) == 60
    repeated = taken(WorkloadConfig(dataset="prefix_repetition", input_len=10), 200)
    assert len({(prompt.token_ids or ())[:256] for prompt in repeated}) == 10


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset": "sonet"}, "--dataset-name: unknown 'sonet': did you mean sonnet"),
        ({"dataset": "csv"}, "--dataset-name csv reads a file: give --dataset-path"),
        ({"dataset": "hf", "dataset_path": "/nowhere"}, "/nowhere is not a folder"),
        ({"exact_lengths": True}, "--exact-lengths cuts sonnet and shakespeare"),
        ({"exact_lengths": True, "dataset": "sonnet", "endpoint": "chat"}, "chat templates add tokens"),
        ({"arrivals": "trace"}, "give --dataset-name one that has times"),
        ({"time_scale": 2.0}, "give --dataset-name one that has times"),
        ({"time_scale": 0.0}, "--time-scale 0: give a factor above 0"),
        ({"num_prefixes": 0}, "--num-prefixes 0"),
        ({"cancel_fraction": 1.5}, "--cancel-fraction 1.5: give a fraction"),
        ({"jitter": -1.0}, "--jitter -1"),
        ({"n": 0}, "--n 0"),
    ],
)
def test_an_invalid_workload_is_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_workload(WorkloadConfig(**fields))


def test_every_kind_of_prompts_is_fixed_by_its_seed(write_conversations: Callable[[], Path]) -> None:
    datasets = ("random", "prefix_repetition", "sonnet", "azure-conv", "sharegpt")
    for dataset, endpoint in itertools.product(datasets, ("completions", "chat")):
        config = WorkloadConfig(
            dataset=dataset, dataset_path=str(write_conversations()), endpoint=endpoint, lengths="normal"
        )
        assert taken(config, 40) == taken(config, 40)
        tokens = taken(config, 40)[0].token_ids
        assert (tokens is None) == (endpoint == "chat" or dataset in ("sonnet", "sharegpt"))


@pytest.fixture
def write_conversations(tmp_path: Path) -> Callable[[], Path]:
    def written() -> Path:
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps(CONVERSATIONS_FILE))
        return path

    return written
