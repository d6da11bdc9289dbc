"""What an engine can process is known before the load."""

from __future__ import annotations

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import EngineFacts
from servetop.run.loop.workload_fit import check_at_engine

FACTS = EngineFacts(name="vllm", title="vLLM", models=("m",), max_model_len=1024)


async def test_requests_within_the_context_fit() -> None:
    await check_at_engine(WorkloadConfig(input_len=1000, output_len=24, model_mix={"m": 1.0}), FACTS)


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (WorkloadConfig(input_len=1000, output_len=25), "context has 1,024"),
        (WorkloadConfig(model_mix={"other": 1.0}), "other"),
    ],
)
async def test_others_are_refused(workload: WorkloadConfig, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        await check_at_engine(workload, FACTS)
