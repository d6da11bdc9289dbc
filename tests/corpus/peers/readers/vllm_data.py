"""Reads data files with the datasets of `vllm bench serve`; runs in vLLM's environment with pandas."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import transformers
import vllm
from vllm.benchmarks.datasets.datasets import BurstGPTDataset, CustomDataset, ShareGPTDataset, SpecBench, TimedTrace

from tests.corpus.peers.data_readings import (
    DataJob,
    DataPeerReading,
    Loader,
    is_json_array,
    is_json_lines,
    main,
    since_first,
)

_LABELS = {f"timed_trace_label_{name}": name for name in ("timestamp", "input_length", "output_length", "hash_ids")}
_FIXED_OUTPUT = 256
"""The default of --custom-output-len."""


def choose(job: DataJob) -> Loader | None:
    """Return the dataset of the benchmark that takes such a file."""
    if is_json_lines(job.body):
        turns = b'"turns"' in job.body
        return {
            "custom": Loader(_custom, "data.jsonl"),
            "mooncake": Loader(functools.partial(_trace, seconds=0.001, block=512), "data.jsonl"),
            "timed_trace": Loader(functools.partial(_trace, seconds=1.0, block=16), "data.jsonl"),
            "conversations": Loader(_first_turns, "data.jsonl") if turns else None,
        }.get(job.dataset)
    if job.dataset == "sharegpt" and is_json_array(job.body):
        return Loader(_sharegpt, "data.json")
    return Loader(_burstgpt, "data.csv") if job.dataset == "burstgpt" else None


def _sharegpt(path: Path, job: DataJob) -> DataPeerReading:
    dataset = ShareGPTDataset(dataset_path=str(path), disable_shuffle=True)
    found = dataset.sample(_tokenizer(), num_requests=1000, no_oversample=True)
    return DataPeerReading(texts=[request.prompt for request in found])


def _custom(path: Path, job: DataJob) -> DataPeerReading:
    dataset = CustomDataset(dataset_path=str(path), disable_shuffle=True)
    found = dataset.sample(
        _tokenizer(),
        num_requests=-1,
        output_len=-1 if job.outputs else _FIXED_OUTPUT,
        skip_chat_template=True,
    )
    outputs = [request.expected_output_len for request in found] if job.outputs else None
    return DataPeerReading(texts=[request.prompt for request in found], outputs=outputs)


def _first_turns(path: Path, job: DataJob) -> DataPeerReading:
    dataset = SpecBench(dataset_path=str(path), disable_shuffle=True)
    found = dataset.sample(_tokenizer(), num_requests=-1, output_len=_FIXED_OUTPUT, skip_chat_template=True)
    return DataPeerReading(turns=[[request.prompt] for request in found])


def _burstgpt(path: Path, job: DataJob) -> DataPeerReading:
    dataset = BurstGPTDataset(dataset_path=str(path))
    found = dataset.sample(_tokenizer(), num_requests=len(dataset.data))
    return DataPeerReading(lengths=_lengths(found), shuffled=True)


def _trace(path: Path, job: DataJob, *, seconds: float, block: int) -> DataPeerReading:
    options = {"timed_trace_sec_multiplier": seconds, "timed_trace_chunk_hash_size": block, **_LABELS}
    dataset = TimedTrace(dataset_path=str(path), **options)
    found = dataset.sample(_tokenizer(), num_requests=1000)
    return DataPeerReading(lengths=_lengths(found), times=since_first([request.timestamp for request in found]))


def _lengths(requests: list[Any]) -> list[list[int]]:
    return [[request.prompt_len, request.expected_output_len] for request in requests]


@functools.cache
def _tokenizer() -> Any:
    """Return the tokenizer that install_vllm.sh puts into vLLM's environment."""
    return transformers.AutoTokenizer.from_pretrained(Path(vllm.__file__).parents[4] / "tiny-llama")


if __name__ == "__main__":
    main(choose)
