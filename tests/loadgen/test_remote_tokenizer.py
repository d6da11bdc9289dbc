"""Exact token counts from a local tokenizer where neither the engine nor the server counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import TokenSource
from servetop.loadgen.transport.remote_tokenizer import corpus_tokens
from servetop.workload.prompts.dataset_prompts import corpus_text
from servetop.workload.prompts.local_tokenizer import load_tokenizer
from tests.workload.tokenizer_files import write_ranks


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    return write_ranks(tmp_path)


async def test_a_corpus_is_tokenized_without_an_engine(ranks: Path) -> None:
    workload = WorkloadConfig(dataset="sonnet", exact_lengths=True, tokenizer=str(ranks))
    ids = await corpus_tokens(workload, "http://nobody.invalid", model="m")
    assert load_tokenizer(str(ranks)).decode(ids) == corpus_text("sonnet")


async def test_completions_are_counted_if_the_server_does_not_count(
    server: Any, start: Callable[..., Any], sse_head: bytes, ranks: Path
) -> None:
    async def without_usage(request: Any) -> None:
        await request.raw(sse_head)
        for text in ("on", " the", " a"):
            await request.event({"choices": [{"index": 0, "delta": {"content": text}}]})
        await request.end()

    server.script = without_usage
    for tokenizer, tokens, source in ((str(ranks), 4, TokenSource.TOKENIZER), ("", 3, TokenSource.ESTIMATE)):
        run = start(server.url, endpoint="chat", tokenizer=tokenizer, continuous_usage=False)
        run.begin(StageConfig(num_prompts=1))
        await run.finish()
        (record,) = run.records
        assert (record.output_tokens, record.token_source) == (tokens, source)
        assert (record.prompt_text, record.output_text) == (None, None)
        assert run.total.output_tokens == tokens
