"""Each data option has an effect on each kind of dataset, or is refused: none is ignored."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.options.declaration import declared
from servetop.cli.options.request_options import DataOptions
from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.build import prompts_for
from servetop.workload.prompts.dataset_options import check_dataset_options
from servetop.workload.validation import resolve_workload

CHANGED: Mapping[str, Any] = {
    "input_len": 300, "output_len": 30, "num_turns": "1", "lengths": "lognormal", "range_ratio": 0.5, "prefix_len": 40,
    "num_prefixes": 5, "cache_hit_rate": 0.5, "dataset_column": "other", "skip_bad_rows": True, "clip_lengths": True,
    "dataset_path": "elsewhere",
}  # fmt: skip
"""A value of each option that is not its default."""
ELSEWHERE = {"dataset_name", "exact_lengths", "tokenizer"}
"""Options that choose the dataset, or need an engine or a file of a model: tests/workload has theirs."""
TALK = [{"from": "human", "value": "Why is the sky blue?"}, {"from": "gpt", "value": "Because of the air in it."}]
TWO = [*TALK, {"from": "human", "value": "And the sea?"}, {"from": "gpt", "value": "It is like a mirror to it."}]
FILES = {
    "random": "",
    "prefix_repetition": "",
    "sonnet": "",
    "azure-conv": "",
    "mtbench": "",
    "sharegpt": json.dumps([{"conversations": TALK}, {"conversations": TWO}]),
    "conversations": json.dumps([{"messages": TWO, "other": TALK}]),
    "custom": json.dumps({"prompt": "Why is the sky blue?", "other": "And the sea?"}),
    "csv": "prompt,other,output_len\nWhy?,How?,\nWhere?,Who?,7\n",
    "trace": "arrival_s,input,output\n0,10,9\n1,20,8\n",
    "timed_trace": json.dumps({"timestamp": 0, "input_length": 40, "output_length": 9, "hash_ids": [1, 2, 3]}),
}


def sent(workload: WorkloadConfig) -> list[str]:
    """The first prompts of a workload, for a model with a short context."""
    source = prompts_for(workload, (1,), max_model_len=8)
    return [repr(prompt) for prompt in itertools.islice(source.prompts(), 12)]


def test_every_data_option_is_tried_here_or_elsewhere() -> None:
    names = {option.name for option in declared(DataOptions)} | {"input_len", "output_len"}
    assert names == CHANGED.keys() | ELSEWHERE


@pytest.mark.parametrize("option", CHANGED)
@pytest.mark.parametrize("dataset", FILES)
def test_an_option_has_an_effect_or_is_refused(dataset: str, option: str, tmp_path: Path) -> None:
    plain = WorkloadConfig(dataset=dataset)
    if FILES[dataset]:
        (tmp_path / "data").write_text(FILES[dataset])
        plain = replace(plain, dataset_path=str(tmp_path / "data"))
    resolve_workload(plain)
    changed = replace(plain, **{option: CHANGED[option]})
    if option == "skip_bad_rows" and FILES[dataset]:  # its effect is on malformed rows, which end the run without it
        check_dataset_options(changed)
    elif _accepted(changed):
        assert sent(plain) != sent(changed)


def _accepted(workload: WorkloadConfig) -> bool:
    try:
        resolve_workload(workload)
    except UsageError:
        return False
    return True
