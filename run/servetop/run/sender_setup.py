"""What the senders of a run are told before they begin: from its configuration and what the engine says of itself."""

from __future__ import annotations

import asyncio
import dataclasses
import os

from servetop.core.config import ConnectionConfig, RunConfig, WorkloadConfig
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.control.control_client import normalise_url
from servetop.engines.dialects.registry import endpoint_of
from servetop.loadgen.messages import SenderSetup
from servetop.recordings.write.resume import RunStart
from servetop.run.engine_session import EngineSession
from servetop.workload.plain_workload import is_plain
from servetop.workload.request_headers import all_headers


def requests_to(config: RunConfig, facts: EngineFacts) -> str:
    """The front door where there is one, else the engine, the first of several."""
    return normalise_url(config.engine.front_door) if config.engine.front_door else facts.url or ""


async def sender_setup(
    config: RunConfig, engine: EngineSession, *, facts: EngineFacts, start: RunStart, connection: ConnectionConfig
) -> SenderSetup:
    """The setup of an engine that answers; UsageError when it does not serve the models or the lengths asked for."""
    workload, key = config.workload, engine.api_key
    engines = engine.handle.engine
    endpoint = endpoint_of(workload.endpoint, engines.endpoints, title=engines.title)
    headers = all_headers(workload, os.environ)
    workload = dataclasses.replace(workload, endpoint=endpoint, headers=headers, header_env={})
    await _check_at_engine(workload, facts)
    corpus_ids: tuple[int, ...] = ()
    if workload.exact_lengths:
        from servetop.loadgen.transport.remote_tokenizer import corpus_tokens

        corpus_ids = await corpus_tokens(
            workload, facts.url or "", model=facts.model or "", api_key=key, connection=connection
        )
    return SenderSetup(
        url=requests_to(config, facts),
        more_urls=() if config.engine.front_door else facts.replica_urls[1:],
        model=facts.model or "",
        dialect=engines.endpoints[endpoint],
        continuous_usage=engine.handle.continuous_usage,
        workload=workload,
        max_model_len=facts.max_model_len,
        corpus_ids=corpus_ids if engines.takes_token_ids else (),
        text_prompts=not engines.takes_token_ids,
        seed=config.seed,
        origin_ns=start.anchor.origin_ns,
        first_id=start.first_request,
        api_key=key,
        connection=connection,
    )


async def _check_at_engine(workload: WorkloadConfig, facts: EngineFacts) -> None:
    """UsageError for models and lengths that the engine does not take; most loads are seen to fit without NumPy."""
    if workload.model_mix:
        from servetop.workload.prompts.model_mix import check_served

        check_served(workload.model_mix, facts.models)
    longest, limit = workload.input_len + workload.output_len, facts.max_model_len
    if limit is not None and not (is_plain(workload) and longest <= limit):
        from servetop.workload.validation import check_fits

        await asyncio.to_thread(check_fits, workload, limit)
