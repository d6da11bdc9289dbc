"""No option is ignored because of the dataset."""

import json
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.validation import resolve_workload

SHAREGPT = json.dumps([{"conversations": [{"from": "human", "value": "x" * 40}, {"from": "gpt", "value": "y" * 40}]}])
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,10,5\n2023-11-16 18:15:47.68,10,5\n"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (SHAREGPT, "sharegpt (first questions) or conversations (all questions)"),
        ('{"messages": []}\n', "conversations (all questions)"),
        ('{"prompt": "x"}\n', "custom"),
        (
            '{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": []}\n',
            "mooncake (times in milliseconds) or timed_trace (times in",
        ),
        ("prompt\nHi\n", "csv"),
        (AZURE, "azure"),
        ("PAR1", "parquet"),
    ],
)
def test_a_path_without_a_name_is_rejected_with_the_likely_ones(tmp_path: Path, content: str, names: str) -> None:
    path = tmp_path / "data"
    path.write_text(content)
    with pytest.raises(UsageError) as refused:
        resolve_workload(WorkloadConfig(dataset_path=str(path)))
    assert str(refused.value).startswith(f"--dataset-path {path} needs --dataset-name: the file looks like {names}")


def test_a_path_to_nothing_is_rejected_and_a_folder_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere is not a file: check --dataset-path"):
        resolve_workload(WorkloadConfig(dataset_path=str(tmp_path / "nowhere")))
    assert likely_names(tmp_path) == ("hf",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset": "azure-conv", "dataset_path": "x"}, "azure-conv ships with servetop: for a file use --dataset-na"),
        ({"dataset": "sonnet", "dataset_path": "x"}, "sonnet reads no file: leave out --dataset-path"),
        ({"dataset": "prefix_repetition", "dataset_path": "x"}, "prefix_repetition reads no file"),
        ({"dataset_column": "q"}, "--dataset-column: random has no column to choose"),
        ({"dataset": "azure", "dataset_column": "q"}, "--dataset-column: azure has no column to choose"),
        ({"skip_bad_rows": True}, "--skip-bad-rows: random reads no file"),
        ({"dataset": "sharegpt", "prefix_len": 9}, "--random-prefix-len: the texts of sharegpt are sent as they are"),
        ({"num_prefixes": 3}, "--num-prefixes: the prompts share no prefix"),
        ({"dataset": "azure", "input_len": 9}, "--input-len: the prompts of azure have lengths of their own"),
        (
            {"dataset": "azure-code", "output_len": 9},
            "--output-len: azure-code has output lengths of its own.*output=9",
        ),
        ({"dataset": "sharegpt", "output_len": 9}, "--output-len: sharegpt has output lengths of its own"),
        ({"dataset": "sharegpt", "range_ratio": 0.5}, "--random-range-ratio: sharegpt has lengths of its own"),
        (
            {"dataset": "custom", "lengths": "lognormal:input_mean=9,output_mean=9"},
            "--lengths: input_mean in 'lognormal:.*': the prompts of custom have lengths of their own",
        ),
        ({"dataset": "mtbench", "lengths": "zipf:input_cap=9"}, "--lengths: input_cap in 'zipf:input_cap=9'"),
        ({"jitter": 1.0}, "--jitter spreads the times of a trace"),
        ({"dataset": "azure-conv", "arrivals": "poisson", "jitter": 1.0}, "--jitter spreads the times of a trace"),
    ],
)
def test_an_option_without_effect_is_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_workload(WorkloadConfig(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": "azure-conv", "lengths": "fixed", "input_len": 9, "output_len": 9},
        {"dataset": "prefix_repetition", "num_prefixes": 3, "input_len": 9},
        {"dataset": "sonnet", "prefix_len": 9, "num_prefixes": 3, "input_len": 9, "output_len": 9},
        {"cache_hit_rate": 0.5, "num_prefixes": 3},
        {"dataset": "mtbench", "output_len": 9, "dataset_column": "turns"},
    ],
)
def test_options_with_an_effect_are_accepted(fields: dict[str, Any]) -> None:
    resolve_workload(WorkloadConfig(**fields))
