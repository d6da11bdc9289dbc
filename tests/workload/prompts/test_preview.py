"""A preview has the figures of what a run would send."""

import json
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.prompts.preview import DatasetPreview, preview


def test_a_preview_counts_rows_lengths_shared_prefixes_and_what_is_left_out(tmp_path: Path) -> None:
    path, start = tmp_path / "data.jsonl", "You answer questions about the sea, briefly and in English. "
    rows = [{"prompt": f"{start}Question {number}", "output_tokens": 5 + number} for number in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"prompt": 5}\n{"prompt": "no length"}\n')
    found = preview(WorkloadConfig(dataset="custom", dataset_path=str(path)), examples=2)
    assert (found.rows, found.estimated, found.without_output) == (5, True, 1)
    assert found.remarks[0].startswith(
        f"1 bad row of the dataset was skipped; the first: {path}, line 5, column 'prompt'"
    )
    assert found.prompt_tokens == {"min": 3.0, "mean": 15.0, "p50": 18.0, "p90": 18.0, "p99": 18.0, "max": 18.0}
    assert (found.output_tokens["min"], found.output_tokens["max"]) == (5.0, 8.0)
    assert found.shared_prefixes == pytest.approx(3 * 64 / (4 * 70 + 9), abs=0.001)
    assert [(row.line, row.input_tokens, row.output_tokens) for row in found.examples] == [(1, 18, 5), (2, 18, 6)]


def test_a_preview_of_a_trace_has_its_times_and_shared_blocks(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    row = '{{"timestamp": {}, "input_length": 1000, "output_length": 9, "hash_ids": [{}]}}\n'
    path.write_text(row.format(0, "7, 8") + row.format(3000, "7, 9") + row.format(6000, "5, 9"))
    found = preview(WorkloadConfig(dataset="mooncake", dataset_path=str(path)), examples=0)
    assert (found.rows, found.estimated, found.duration, found.examples) == (3, False, 6.0, ())
    assert found.shared_prefixes == pytest.approx(512 / 3000)
    assert found.mismatched_blocks == 0
    plain = preview(WorkloadConfig(dataset="azure-code"), examples=0)
    assert (plain.rows, plain.shared_prefixes) == (8819, None)


def test_a_preview_of_conversations_counts_their_turns() -> None:
    found = preview(WorkloadConfig(dataset="mtbench"), examples=1)
    assert (found.rows, found.turns["min"], found.turns["max"], found.without_output) == (80, 2.0, 2.0, 160)
    assert found.examples[0].input_tokens


def test_a_file_that_ends_too_early_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"prompt": "One?"}\n' + "x" * (17 << 20))
    found = preview(WorkloadConfig(dataset="custom", dataset_path=str(path)), examples=1)
    assert found.rows == 1
    assert "longer than 16 MiB" in found.remarks[0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("random", "", "random has no rows to show"),
        (
            "custom",
            '{"q": "x"}\n',
            "no usable rows: 1 bad row of .* was skipped; .* no column 'prompt': it has q: choose with .*-column q$",
        ),
    ],
)
def test_a_dataset_without_rows_is_rejected(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        preview(WorkloadConfig(dataset=name, dataset_path=str(path) if text else ""), examples=1)


LOGS = sorted((Path(__file__).parents[2] / "engines" / "data").rglob("*.log"))


@pytest.mark.parametrize("path", LOGS, ids=[f"{path.parent.name}/{path.stem}" for path in LOGS])
def test_the_log_of_an_engine_is_refused_with_the_columns_found(path: Path) -> None:
    (name, *_) = likely_names(path)
    with pytest.raises(UsageError) as refused:
        preview(WorkloadConfig(dataset=name, dataset_path=str(path)), examples=1)
    assert str(path) in str(refused.value)
    assert str(refused.value).isprintable()


def test_sentences_are_not_proposed_as_columns(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_text("Triton is installed, but it has no CPU backend\nINFO: loading weights\n")
    with pytest.raises(
        UsageError, match=r"it has Triton is installed, .*, which names no column: is the file a dataset"
    ):
        preview(WorkloadConfig(dataset="csv", dataset_path=str(path)), examples=1)


def trace_preview(tmp_path: Path, *rows: tuple[int, str]) -> DatasetPreview:
    path = tmp_path / "trace.jsonl"
    text = '{{"timestamp": {}, "input_length": {}, "output_length": 9{}}}\n'
    path.write_text("".join(text.format(1000 * at, length, blocks) for at, (length, blocks) in enumerate(rows)))
    return preview(WorkloadConfig(dataset="mooncake", dataset_path=str(path)), examples=0)


def test_blocks_beyond_a_prompt_count_in_no_share(tmp_path: Path) -> None:
    found = trace_preview(tmp_path, (600, ', "hash_ids": [1, 2, 3, 4]'), (600, ', "hash_ids": [1, 2, 3, 4]'))
    assert found.shared_prefixes == pytest.approx(512 / 1200)
    assert (found.block_tokens, found.mismatched_blocks) == (512, 2)


def test_tokens_in_no_block_are_random(tmp_path: Path) -> None:
    found = trace_preview(
        tmp_path, (2048, ', "hash_ids": [1]'), (2048, ', "hash_ids": [1]'), (2048, ', "hash_ids": []')
    )
    assert found.shared_prefixes == pytest.approx(512 / (3 * 2048))


def test_a_trace_without_blocks_has_random_prompts(tmp_path: Path) -> None:
    assert trace_preview(tmp_path, (600, ', "hash_ids": []'), (600, ', "hash_ids": []')).shared_prefixes is None
