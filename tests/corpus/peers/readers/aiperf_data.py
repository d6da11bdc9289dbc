"""Reads data files with AIPerf's loaders, before it makes prompts of lengths; runs in the peer's environment."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiperf.common import random_generator
from aiperf.dataset.loader.burst_gpt import BurstGPTTraceDatasetLoader
from aiperf.dataset.loader.mooncake_trace import MooncakeTraceDatasetLoader
from aiperf.dataset.loader.sharegpt import ShareGPTLoader
from aiperf.dataset.loader.spec_bench import SpecBenchLoader

from tests.corpus.peers.data_readings import (
    DataJob,
    DataPeerReading,
    Loader,
    is_json_array,
    is_json_lines,
    main,
    since_first,
)


class _Bytes:
    """A tokenizer for which every byte is a token."""

    def encode_lengths_batch(self, texts: list[str]) -> list[int]:
        return [len(text.encode()) for text in texts]


def choose(job: DataJob) -> Loader | None:
    """Return the loader that takes such a file."""
    if is_json_lines(job.body):
        turns = b'"turns"' in job.body
        return {
            "mooncake": Loader(functools.partial(_trace, kind=MooncakeTraceDatasetLoader), "data.jsonl"),
            "conversations": Loader(functools.partial(_conversations, make=_spec_bench), "data.jsonl")
            if turns
            else None,
        }.get(job.dataset)
    if is_json_array(job.body) and b'"conversations"' in job.body and job.dataset in ("sharegpt", "conversations"):
        return Loader(functools.partial(_conversations, make=_sharegpt), "data.json")
    if job.dataset == "burstgpt":
        return Loader(functools.partial(_trace, kind=BurstGPTTraceDatasetLoader), "data.csv")
    return None


def _sharegpt() -> Any:
    return ShareGPTLoader(tokenizer=_Bytes())


def _spec_bench() -> Any:
    return SpecBenchLoader(multi_turn=True)


def _conversations(path: Path, job: DataJob, *, make: Any) -> DataPeerReading:
    """Read a public dataset, whose copy in AIPerf's cache is this file."""

    async def load() -> list[Any]:
        loader = make()
        loader.cache_filepath = path
        try:
            conversations: list[Any] = await loader.convert_to_conversations(await loader.load_dataset())
            return conversations
        finally:
            await loader.http_client.close()

    found = asyncio.run(load())
    turns = [[turn.texts[0].contents[0] for turn in conversation.turns] for conversation in found]
    return DataPeerReading(
        turns=turns,
        texts=[questions[0] for questions in turns],
        system=[conversation.system_message or "" for conversation in found],
    )


def _trace(path: Path, job: DataJob, *, kind: Any) -> DataPeerReading:
    loader = kind(filename=path, prompt_generator=_without_prompts())
    rows = [row for session in loader.load_dataset().values() for row in session]
    return DataPeerReading(
        lengths=[[row.input_length, row.output_length] for row in rows],
        times=since_first([row.timestamp / 1000 for row in rows]),
    )


def _without_prompts() -> Any:
    """Return what a loader of traces prepares, before it makes prompts of the lengths."""
    hashes = SimpleNamespace(set_trace_id=lambda trace: None)
    return SimpleNamespace(tokenizer=None, _hash_id_corpus_rng=hashes, _cache={})


if __name__ == "__main__":
    random_generator.init(0)
    main(choose)
