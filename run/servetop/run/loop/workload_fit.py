"""Checks whether an engine can process the requests of a workload: its models, its context length, its KV blocks."""

from __future__ import annotations

import asyncio

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.run_source import EngineFacts
from servetop.workload.plain_workload import is_plain


async def check_at_engine(workload: WorkloadConfig, facts: EngineFacts) -> None:
    """UsageError for models and lengths that the engine does not support; plain loads are checked without NumPy."""
    if workload.model_mix:
        from servetop.workload.prompts.model_mix import check_served

        check_served(workload.model_mix, facts.models)
    if workload.cache_hit_rate is not None:
        from servetop.workload.prompts.hit_rate_prompts import USUAL_BLOCK, check_hit_rate

        check_hit_rate(workload, block_size=facts.prefix_block or USUAL_BLOCK)
    longest, limit = workload.input_len + workload.output_len, facts.max_model_len
    if limit is not None and not (is_plain(workload) and longest <= limit):
        from servetop.workload.validation import check_fits

        await asyncio.to_thread(check_fits, workload, limit)
