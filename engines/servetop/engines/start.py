"""Starts an engine's server and waits until its health check succeeds (readiness)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.clock import Clock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import LogLine
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text.known_secrets import engine_secrets
from servetop.engines.adapters.engine_flags import agreed, refuse_secrets
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient, bodies
from servetop.engines.control.credentials import api_key
from servetop.engines.engine import Engine
from servetop.engines.engine_registry import load_engine
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.exported_tables import EXPORTED_BY, recorded_table
from servetop.engines.metrics.metrics_reader import GAUGES
from servetop.engines.metrics.metrics_source import MetricsScraper, metrics_scraper
from servetop.engines.plug_in import in_background
from servetop.engines.process.log_filter import LogCapture
from servetop.engines.process.ports import free_port, port_holder, port_is_free
from servetop.engines.process.stop_report import stop_process
from servetop.engines.server_facts import ServerFacts

if TYPE_CHECKING:
    from servetop.engines.process.engine_process import EngineProcess

PROBE_INTERVAL = 0.1
"""Seconds between readiness checks."""
METRICS_PATIENCE = 3.0
"""Seconds for which a metrics server with its own port may refuse connections after the engine is ready."""
TAIL_LINES = 20
"""Log lines attached to an error."""
GIVE_UP_TIMEOUT = 3.0
"""Seconds for the graceful shutdown after a failed or interrupted start."""


async def start_engine(
    config: EngineConfig, clock: Clock, *, on_line: Callable[[LogLine], None], resets_cache: bool = False
) -> EngineHandle:
    """Start the engine of `config` and wait until it is ready; `on_line` receives its log lines.

    With `resets_cache` it is started so that its prefix cache can be reset.
    EngineError, with the last log lines, if it is not installed, exits, or is not ready within `start_timeout`;
    UsageError for an unknown engine or model, or conflicting options. No process is left behind on failure or
    cancellation.
    """
    from servetop.engines.process.container import with_launcher  # not needed for attached engines
    from servetop.engines.process.engine_process import EngineProcess

    engine = load_engine(config.name)
    refuse_secrets([*config.command, *config.extra_args])
    key = api_key(config, os.environ)
    port = _port(config, engine)
    launch = await in_background(lambda: engine.launch(config, port=port))
    if resets_cache and engine.cache_reset is not None:
        launch = replace(launch, env={**launch.env, **engine.cache_reset.env})
    command = with_launcher(launch, config, environ=os.environ)
    log = LogCapture(clock, on_line, secrets=engine_secrets(config, os.environ), log_filter=engine.log_filter)
    client = ServerClient(f"http://{command.host}:{command.port}", api_key=key)
    scraper = metrics_scraper(engine, client, config=config, port=command.metrics_port)
    process = await EngineProcess.start(
        command.argv, env=command.env, cwd=command.cwd, cleanup=command.cleanup, log=log, clock=clock
    )
    on_line(LogLine(at=clock.now(), text=_began(process, client, engine), stream="servetop"))
    try:
        checks = _readiness(engine, process, scraper, client=client, clock=clock, ready_line=command.ready_line)
        early = await _wait_until_ready(checks, engine, process, config=config)
        if scraper is not None and command.metrics_port is not None:
            await scraper.wait_until_reachable(clock, timeout=METRICS_PATIENCE)
        facts = await _facts(engine, process, scraper, client=client, config=config, early=early)
    except BaseException:
        await _give_up(process, client, engine, port=command.port)
        if scraper is not None:
            await scraper.pages.close()
        raise
    return EngineHandle(engine, facts, client=client, clock=clock, process=process, scraper=scraper)


def _began(process: EngineProcess, client: ServerClient, engine: Engine) -> str:
    return f"{engine.title} starts as process {process.pid}, to answer at {client.url}"


def _port(config: EngineConfig, engine: Engine) -> int:
    port = agreed(config.port, config.extra_args, engine.port_flag)
    if port is None:
        return free_port()
    if not 0 < port < 65536:
        raise UsageError(f"invalid port {port}: use 1-65535, or omit --port to pick a free one")
    if not port_is_free(port):
        raise EngineError(
            f"port {port} is in use by {port_holder(port)}: stop it, give another --port, "
            f"or omit --port to pick a free one; to attach to that server: --url http://127.0.0.1:{port}"
        )
    return port


async def _wait_until_ready(
    checks: Coroutine[Any, Any, ServerFacts], engine: Engine, process: EngineProcess, *, config: EngineConfig
) -> ServerFacts:
    """Return the result of the readiness `checks`; EngineError if the engine exits before, or after `start_timeout`."""
    died, ready = asyncio.create_task(process.exited.wait()), asyncio.create_task(checks)
    try:
        done, _ = await asyncio.wait({died, ready}, timeout=config.start_timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        died.cancel()
        ready.cancel()
        await asyncio.gather(died, ready, return_exceptions=True)
    if died in done:
        cause = engine.failure_reason(process.log.tail())
        reason = cause or f"it {process.exit_description()}"
        raise EngineError(f"{engine.title} did not start: {reason}", process.log.tail(TAIL_LINES))
    if not done:
        raise EngineError(
            f"{engine.title} was not ready after {config.start_timeout:g} s: see its log, or extend --start-timeout",
            process.log.tail(TAIL_LINES),
        )
    return ready.result()


async def _readiness(
    engine: Engine,
    process: EngineProcess,
    scraper: MetricsScraper | None,
    *,
    client: ServerClient,
    clock: Clock,
    ready_line: str,
) -> ServerFacts:
    """Wait for `ready_line` and a successful health check; return the facts that the metrics had before the line.

    Ray exports the size of the KV cache for one interval only, before its application is ready.
    """
    facts = ServerFacts()
    while ready_line and ready_line not in process.log.tail():
        if facts.kv_blocks_total is None:
            facts, _ = await read_static_facts(scraper)
        await clock.sleep_until(clock.now() + PROBE_INTERVAL)
    while not (await client.request(engine.ready_path)).ok:
        await clock.sleep_until(clock.now() + PROBE_INTERVAL)
    return facts


async def _facts(
    engine: Engine,
    process: EngineProcess,
    scraper: MetricsScraper | None,
    *,
    client: ServerClient,
    config: EngineConfig,
    early: ServerFacts,
) -> EngineFacts:
    results = await client.get_all(engine.probe_paths)
    refuse_without_key(results.get("/v1/models", HttpResult()), client.url, config=config)
    from_metrics, missing = await read_static_facts(scraper)
    limit = agreed(config.max_num_seqs, config.extra_args, engine.batch_size_flag)
    known = (
        ServerFacts(max_num_seqs=limit)
        .merged_with(engine.facts(results))
        .merged_with(from_metrics)
        .merged_with(early)
        .merged_with(engine.boot_facts(process.log.tail()))
    )
    model = known.models[0] if known.models else config.model
    return engine_facts(engine, known, url=client.url, model=model, pid=process.pid, missing=missing)


async def read_static_facts(
    scraper: MetricsScraper | None, *, fallback: HttpResults | None = None
) -> tuple[ServerFacts, tuple[str, ...]]:
    """Read the facts that do not change from an engine's metrics, and the names of the fields that they lack.

    `fallback` are earlier results of the same server, used for pages that time out now.
    """
    if scraper is None:
        return ServerFacts(), GAUGES
    pages = {**bodies({} if fallback is None else fallback), **bodies(await scraper.fetch())}
    pages = {path: page for path, page in pages.items() if path in scraper.reader.paths}
    return scraper.reader.facts(pages), scraper.reader.missing(pages)


def engine_facts(
    engine: Engine,
    known: ServerFacts,
    *,
    url: str,
    model: str | None,
    pid: int | None = None,
    missing: tuple[str, ...] = GAUGES,
) -> EngineFacts:
    """Return the facts in the form of the recording; `model` is the name that requests use."""
    return EngineFacts(
        name=engine.name,
        title=engine.title,
        version=known.version,
        model=model,
        models=known.models,
        url=url,
        managed=pid is not None,
        pid=pid,
        kv_blocks_total=_count(known.kv_blocks_total),
        block_size=_count(known.block_size),
        cache_page=_count(known.cache_page),
        max_num_seqs=_count(known.max_num_seqs),
        max_model_len=_count(known.max_model_len),
        changes_batch_size_live=engine.changes_batch_size_live,
        not_exported=missing,
        endpoints=tuple(engine.endpoints),
        page_age=engine.page_age(managed=pid is not None),
        exported=() if engine.name in EXPORTED_BY else recorded_table(engine),
    )


def _count(value: int | None) -> int | None:
    """Return a plausible size, else None."""
    return value if value is not None and 0 < value <= LARGEST_VALUE else None


def refuse_without_key(result: HttpResult, url: str, *, config: EngineConfig) -> None:
    """Raise EngineError if the server requires an API key, or rejects the given one."""
    if result.status in (401, 403):
        advice = (
            f"it rejects the key in {config.api_key_env}"
            if config.api_key_env
            else "put the API key into an environment variable and give its name with --api-key-env"
        )
        raise EngineError(f"{url} requires authentication (HTTP {result.status}): {advice}")


async def _give_up(process: EngineProcess, client: ServerClient, engine: Engine, *, port: int) -> None:
    stopping = asyncio.create_task(stop_process(process, engine, port=port, timeout=GIVE_UP_TIMEOUT))
    try:
        await asyncio.shield(stopping)
        await client.close()
    except asyncio.CancelledError:  # a second Ctrl-C: stop waiting
        process.kill_now()
        stopping.cancel()
        raise
