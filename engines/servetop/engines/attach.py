"""Attaches to a running server and detects its engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from servetop.core.clock import Clock
from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import LogLine
from servetop.engines.control.connection import route_to
from servetop.engines.control.control_client import REQUEST_TIMEOUT, Headers, HttpResult, HttpResults, ServerClient
from servetop.engines.control.credentials import api_key, metrics_client
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.model_list import MODELS, default_model, is_served, model_names, unlisted_remark
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.control.url_scheme import refuse_wrong_scheme
from servetop.engines.engine import Engine
from servetop.engines.engine_registry import load_engine, loadable_engines
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.exported_tables import recorded_table
from servetop.engines.metrics.metrics_owner import metrics_owner
from servetop.engines.metrics.metrics_reader import GAUGES
from servetop.engines.metrics.metrics_source import MetricsScraper, metrics_scraper
from servetop.engines.metrics.model_rows import related_models
from servetop.engines.metrics.prometheus_server import MetricsAddress
from servetop.engines.server_facts import is_older
from servetop.engines.start import OnLine, engine_facts, read_static_facts, refuse_without_key

AUTO = "auto"
"""The engine name that requests detection."""
FALLBACK = "openai"
"""The fallback engine, which matches every OpenAI-compatible server."""


async def attach_engine(
    config: EngineConfig, clock: Clock, *, headers: Headers | None = None, on_line: OnLine = lambda _: None
) -> EngineHandle:
    """Attach to the server at `config.url`; with the name `auto` the engine is detected from its responses.

    Every request gets the `headers` of the load. Slow servers, such as saturated ones, have `attach_timeout` seconds to
    respond; `on_line` receives the progress.

    EngineError, in one line with the next step, if the server does not respond, requires a key, is another engine or
    too old a version, or does not serve the model; UsageError for an invalid address, and for a batch size that only
    a restart can change.
    """
    if config.url is None:
        raise UsageError("no server to attach to: give --url http://host:port")
    wanted, engines = _possible_engines(config.name)
    connection = route_to(ServerUrl.parse(config.url).origin, config.connection, os.environ).connection
    client = ServerClient(config.url, api_key=api_key(config, os.environ), headers=headers, connection=connection)
    try:
        results = await _probe(client, engines, clock=clock, limit=config.attach_timeout, on_line=on_line)
        await _refuse_unusable(results, client, config=config)
        engine = _detect(engines, results, wanted=wanted, url=client.url)
        _refuse_old(engine, results, client.url)
        model = _model(engine, results, config=config, url=client.url)
        _refuse_batch_size(engine, config.max_num_seqs, client.url)
        scraper, exported = await _metrics(engine, client, results, model=model, config=config, connection=connection)
    except BaseException:
        await client.close()
        raise
    own = scraper is not None and scraper.pages.url == client.url
    from_metrics, missing = await read_static_facts(scraper, fallback=results if own else None)
    unread = missing == GAUGES and engine.name == FALLBACK and config.metrics_url is None  # not an error
    known = engine.facts(results).merged_with(from_metrics)
    facts = engine_facts(engine, known, url=client.url, model=model, missing=missing)
    facts = replace(facts, exported=exported or facts.exported)
    handle = EngineHandle(engine, facts, client=client, clock=clock, scraper=None if unread else scraper)
    handle.metrics_trouble = _unread_metrics(scraper, results) if unread else None
    handle.remark = unlisted_remark(results[MODELS], facts.models, model=model, where=client.server.where(MODELS))
    return await _with_batch_size(handle, config.max_num_seqs)


def _possible_engines(name: str) -> tuple[Engine | None, list[Engine]]:
    """Return the named engine, None for any, and those that a server may be."""
    wanted = None if name == AUTO else load_engine(name)
    return wanted, [wanted] if wanted is not None and wanted.name == FALLBACK else loadable_engines()


async def _refuse_unusable(results: HttpResults, client: ServerClient, *, config: EngineConfig) -> None:
    """EngineError for a server that does not respond, has another scheme, or does not show what it serves."""
    await refuse_wrong_scheme(client.url, results)
    _refuse_unresponsive(results, client.url)
    _refuse_without_list(results[MODELS], client, config=config)


def _refuse_without_list(result: HttpResult, client: ServerClient, *, config: EngineConfig) -> None:
    """EngineError if the list of models needs a key, or is elsewhere; with a `--model` the list is not needed."""
    if config.model:
        return
    refuse_without_key(result, client.url, config=config)
    if result.redirect:
        raise EngineError(
            f"{client.server.where(MODELS)} {result.redirect} (HTTP {result.status}): give that address with --url"
        )


def _unread_metrics(scraper: MetricsScraper | None, results: HttpResults) -> str | None:
    """Why the metrics are unknown, if there is a page that did not arrive in time; None if there is none."""
    paths = () if scraper is None else scraper.reader.paths
    late = [path for path in paths if path in results and results[path].late]
    return f"no metrics: {late[0]} did not arrive in time, so the engine is not measured" if late else None


async def _metrics(
    engine: Engine,
    client: ServerClient,
    results: HttpResults,
    *,
    model: str,
    config: EngineConfig,
    connection: ConnectionConfig,
) -> tuple[MetricsScraper | None, tuple[Mapping[str, Any], ...]]:
    """Return the scraper, and the table of the engine page if the metrics are those of another engine.

    A gateway may hide the engine behind it, while `--metrics-url` leads to the engine.
    """
    owner = None
    if engine.name == FALLBACK and config.metrics_url is not None:
        address = MetricsAddress.parse(config.metrics_url)
        page = ServerUrl.page(address.url)
        other = metrics_client(page, client, config=config, environ=os.environ, connection=connection)
        owner = await metrics_owner(other, match=address.match)
    source = engine if owner is None else load_engine(owner)
    models = related_models(model, results[MODELS].json())
    scraper = metrics_scraper(source, client, config=config, models=models, connection=connection)
    return scraper, () if owner is None else recorded_table(source)


async def _with_batch_size(handle: EngineHandle, max_num_seqs: int | None) -> EngineHandle:
    """Return the handle after setting the batch size, if one is given; stop the handle if that fails."""
    try:
        if max_num_seqs is not None:
            await handle.set_max_num_seqs(max_num_seqs)
    except BaseException:
        await handle.stop()
        raise
    return handle


async def _probe(
    client: ServerClient, engines: list[Engine], *, clock: Clock, limit: float, on_line: OnLine
) -> HttpResults:
    """GET all probe paths, and repeat those that timed out while they could still decide the match."""
    started = clock.now()
    specific = [engine for engine in engines if engine.name != FALLBACK] or engines

    def left() -> float:
        return limit - (clock.now() - started)

    def report_waiting() -> None:
        text = f"waiting for {client.url} to respond: {left():.0f} s left of --attach-timeout {limit:g}"
        on_line(LogLine(at=clock.now(), text=text, stream="servetop"))

    first = await client.request(MODELS, timeout=min(REQUEST_TIMEOUT, limit))
    if first.error and not first.late:
        return {MODELS: first}  # not an HTTP server: the other paths would fail too
    if first.status in (404, 405) and client.server.other is not None:
        first = await _other_reading(client, first)
    if first.late:
        report_waiting()
    others = await client.get_all(_paths(engines), timeout=max(min(REQUEST_TIMEOUT, left()), 0.0))
    results = {**others, MODELS: first}
    while late := [path for path, result in results.items() if result.late]:
        detected = any(engine.match_score(results) for engine in specific)
        if left() <= 0 or (detected and not results[MODELS].late):
            break
        report_waiting()
        results |= await client.get_all(late, timeout=left())
    return results


async def _other_reading(client: ServerClient, first: HttpResult) -> HttpResult:
    """Ask for the list of models where the address may also mean; adopt that reading if there is one."""
    given = client.server
    client.server = given.other or given
    result = await client.request(MODELS)
    if model_names(result.json()):
        return result
    client.server = given
    return first


def _paths(engines: list[Engine]) -> list[str]:
    paths = [path for engine in engines for path in engine.probe_paths]
    return paths + [path for engine in engines if (reader := engine.metrics()) is not None for path in reader.paths]


def _refuse_unresponsive(results: HttpResults, url: str) -> None:
    errors = [result.error for result in results.values()]
    if all(errors):
        late = all(result.late for result in results.values())
        longer = "give a longer --attach-timeout, or " if late else ""
        raise EngineError(f"nothing answers at {url} ({errors[0]}): is the server up? {longer}try: curl {url}/health")


def _detect(engines: list[Engine], results: HttpResults, *, wanted: Engine | None, url: str) -> Engine:
    scores = {engine.name: engine.match_score(results) for engine in engines}
    best = max(engines, key=lambda engine: scores[engine.name])
    if wanted is None:
        return best if scores[best.name] else load_engine(FALLBACK)
    if wanted.name == FALLBACK or scores[wanted.name] == scores[best.name]:
        return wanted
    version = best.facts(results).version
    detected = f"{best.title} {version}" if version and version[0].isdigit() else best.title
    raise EngineError(
        f"{url} responds like {detected}, not like {wanted.title}: give --engine {best.name}, or leave it out"
    )


def _refuse_old(engine: Engine, results: HttpResults, url: str) -> None:
    version = engine.facts(results).version
    if version and engine.oldest_version and is_older(version, engine.oldest_version):
        raise EngineError(
            f"{url} runs {engine.title} {version}, older than the supported {engine.oldest_version}: update it, "
            f"or give --engine {FALLBACK} to load it without its metrics"
        )


def _refuse_batch_size(engine: Engine, max_num_seqs: int | None, url: str) -> None:
    if max_num_seqs is not None and not engine.changes_batch_size_live:
        raise UsageError(
            f"{engine.title} at {url} cannot change its batch size while it runs: leave out --max-num-seqs, "
            "or limit the client with --max-concurrency"
        )


def _model(engine: Engine, results: HttpResults, *, config: EngineConfig, url: str) -> str:
    served = engine.facts(results).models
    if not served and not config.model:
        result = results[MODELS]
        why = result.error or f"HTTP {result.status}: {excerpt(result.body)}"
        raise EngineError(f"{url}{MODELS} lists no models ({why}): is that the server's address? or give --model")
    if not config.model:
        return default_model(served)
    names = [config.model]
    with suppress(UsageError):  # not an alias: the served name itself, or an error
        names.append(engine.resolve_model(config.model))
    found = next((name for name in names if is_served(name, served)), None)
    if found is None and engine.name == FALLBACK:
        return config.model  # a gateway may serve what it does not list
    if found is None:
        raise EngineError(f"{url} does not serve {config.model!r}: it serves {', '.join(served[:8])}")
    return found
