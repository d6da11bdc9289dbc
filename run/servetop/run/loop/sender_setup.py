"""The set-up of the sender processes, from the configuration of the run and the facts of the engine."""

from __future__ import annotations

import asyncio
import dataclasses
import os

from servetop.core.config import ConnectionConfig, RunConfig, WorkloadConfig
from servetop.core.config_values.cell_workload import cell_workloads
from servetop.core.events import Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.control.connection import Route, route_to
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.dialects.dialect_registry import endpoint_of
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.worker.start_senders import LoadSenders
from servetop.recordings.write.resume import RunStart
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.process.first_sender import FirstSender
from servetop.workload.prompts.ordinary_tokens import (
    ORDINARY,
    UNCHECKED,
    UNKNOWN_TOKENIZER,
    draws_token_ids,
    ordinary_ids,
    ordinary_text,
)
from servetop.workload.request_headers import all_headers
from servetop.workload.stages.stage_draws import DrawSeeds, StageDraws


def request_url(config: RunConfig, facts: EngineFacts) -> str:
    """Return the URL that receives the requests: the front door, else the engine, else its first replica."""
    return ServerUrl.parse(config.engine.front_door).text if config.engine.front_door else facts.url or ""


def route_of(config: RunConfig, facts: EngineFacts) -> Route:
    """Return how the senders reach the engine; proxies do not apply to an engine that servetop started."""
    return route_to(request_url(config, facts), config.engine.connection, os.environ if config.engine.url else {})


async def set_up_sender(
    sender: FirstSender, config: RunConfig, engine: EngineSession, *, ticks: TickRecorder, start: RunStart
) -> tuple[LoadSenders, SenderSetup]:
    """Set up the senders for a running engine; a remark on the way to it is noted."""
    facts = engine.handle.facts
    route = route_of(config, facts)
    if route.remark:
        ticks.note(Severity.INFO, "load", text=route.remark)
    setup = await sender_setup(config, engine, facts=facts, start=start, connection=route.connection)
    if not setup.text_prompts and any(map(draws_token_ids, cell_workloads(setup.workload, config.stages))):
        ticks.set_random_tokens(ORDINARY if setup.token_ids else UNCHECKED)
        if not setup.token_ids:
            ticks.note(Severity.WARNING, "load", text=UNKNOWN_TOKENIZER)
    return await sender.set_up(setup, workers=config.workers), setup


async def sender_setup(
    config: RunConfig, engine: EngineSession, *, facts: EngineFacts, start: RunStart, connection: ConnectionConfig
) -> SenderSetup:
    """Return the set-up for a running engine; its workloads fit the engine."""
    workload, key = config.workload, engine.api_key
    workload, dialect, takes_ids = _written_for(workload, engine)
    workloads = cell_workloads(workload, config.stages)
    engine.handle.count_models(workload.model_mix)
    corpus_ids: tuple[int, ...] = ()
    if exact := next((each for each in workloads if each.exact_lengths), None):
        from servetop.loadgen.transport.remote_tokenizer import corpus_tokens

        corpus_ids = await corpus_tokens(
            exact, facts.url or "", model=facts.model or "", api_key=key, connection=connection
        )
    token_ids: tuple[int, ...] = ordinary_ids(corpus_ids)
    if takes_ids and any(map(draws_token_ids, workloads)):
        token_ids = await _ordinary_tokens(workload, engine)
    return SenderSetup(
        url=request_url(config, facts),
        more_urls=() if config.engine.front_door else facts.replica_urls[1:],
        model=facts.model or "",
        dialect=dialect,
        continuous_usage=engine.handle.continuous_usage,
        workload=workload,
        max_model_len=facts.max_model_len,
        corpus_ids=corpus_ids if takes_ids else (),
        token_ids=token_ids,
        block_size=facts.prefix_block,
        text_prompts=not takes_ids,
        draws=_first_draws(dataclasses.replace(config, workload=workload)),
        origin_ns=start.anchor.origin_ns,
        goodput=config.goodput,
        first_id=start.first_request,
        api_key=key,
        connection=connection,
    )


async def setup_for_engine(setup: SenderSetup, engine: EngineSession) -> SenderSetup:
    """Return the set-up of senders for an engine that was started with other settings, at the same address."""
    facts = engine.handle.facts
    token_ids = await _ordinary_tokens(setup.workload, engine) if setup.token_ids else ()
    return dataclasses.replace(
        setup,
        model=facts.model or "",
        max_model_len=facts.max_model_len,
        token_ids=token_ids,
        block_size=facts.prefix_block,
    )


def _first_draws(config: RunConfig) -> StageDraws | None:
    return DrawSeeds.of(config).next(config.stages[0]) if config.stages else None


def _written_for(workload: WorkloadConfig, engine: EngineSession) -> tuple[WorkloadConfig, str, bool]:
    """Return the workload as the server wants it, the dialect, and whether prompts may be token ids."""
    adapter, wanted, body = engine.handle.engine, engine.request_format, workload.extra_body
    endpoint = workload.endpoint if wanted is None else wanted.endpoint
    endpoint = endpoint_of(endpoint, adapter.endpoints, title=adapter.title)
    dialect, takes_ids = adapter.endpoints[endpoint], adapter.takes_token_ids
    if wanted is not None:
        dialect, takes_ids, body = wanted.dialect, not wanted.as_text, wanted.body_changes(body)
    headers = all_headers(workload, os.environ)
    written = dataclasses.replace(workload, endpoint=endpoint, headers=headers, header_env={}, extra_body=body)
    return written, dialect, takes_ids


async def _ordinary_tokens(workload: WorkloadConfig, engine: EngineSession) -> tuple[int, ...]:
    """Ordinary tokens of the model by a local tokenizer or else the engine's; empty without either."""
    text = ordinary_text()
    if not workload.tokenizer:
        return ordinary_ids(await engine.handle.tokenize(text))
    from servetop.workload.prompts.local_tokenizer import load_tokenizer

    return ordinary_ids(await asyncio.to_thread(lambda: load_tokenizer(workload.tokenizer).encode(text)))
