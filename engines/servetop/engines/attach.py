"""Attaches to a running server and detects its engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from servetop.core.clock import Clock
from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import LogLine
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.control.connection import route_to
from servetop.engines.control.control_client import (
    REQUEST_TIMEOUT,
    HttpResult,
    HttpResults,
    ServerClient,
)
from servetop.engines.control.credentials import api_key, metrics_client
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.model_list import MODELS, default_model, model_names
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
from servetop.engines.start import engine_facts, read_static_facts, refuse_without_key
from servetop.engines.watching.watched_server import AttachedServer, watched_handle, watched_models

AUTO = "auto"
"""The engine name that requests detection."""
FORBIDDEN = 403
FALLBACK = "openai"
"""The fallback engine, which matches every OpenAI-compatible server."""


async def attach_engine(
    config: EngineConfig,
    clock: Clock,
    *,
    headers: Mapping[str, str] | None = None,
    on_line: Callable[[LogLine], None] = lambda _: None,
    watched: bool = False,
) -> EngineHandle:
    """Attach to the server at `config.url`; with the name `auto` the engine is detected from its responses.

    Slow servers, such as saturated ones, have `attach_timeout` seconds to respond; `on_line` receives the progress.
    `headers` are sent with every request to this server, and to no other one. Of a `watched` server all models count
    unless one is given, and what is left to see without known metrics is sampled.

    EngineError, in one line with the next step, if the server does not respond, requires a key, is another engine, too
    old, or does not serve the model; UsageError for an invalid address, and for a batch size that needs a restart.
    """
    if config.url is None:
        raise UsageError("no server to attach to: give --url http://host:port")
    engines = [load_engine(FALLBACK)] if config.name == FALLBACK else loadable_engines()
    connection = route_to(ServerUrl.parse(config.url).origin, config.connection, os.environ).connection
    client = ServerClient(config.url, api_key=api_key(config, os.environ), headers=headers, connection=connection)
    try:
        results = await _probe(client, engines, clock=clock, limit=config.attach_timeout, on_line=on_line)
        await refuse_wrong_scheme(client.url, results)
        _refuse_unresponsive(results, client.url, limit=config.attach_timeout)
        engine = _recognised(engines, results, config=config, headers=headers, url=client.url)
        _refuse_batch_size(engine, None if watched else config.max_num_seqs, client.url)
        model, remark = _model(engine, results, config=config, server=client.server)
        models = _counted_models(model, results, config if watched else None)
        scraper, exported = await _metrics(engine, client, models=models, config=config, connection=connection)
    except BaseException:
        await client.close()
        raise
    facts = await _facts(engine, scraper, results, url=client.url, model=model)
    facts, is_known = replace(facts, exported=exported or facts.exported), engine.name != FALLBACK or bool(exported)
    server = AttachedServer(engine, facts, client, scraper, is_known=is_known, remark=remark, probed=results)
    return await (watched_handle if watched else _loaded_handle)(server, clock, config=config)


def _counted_models(model: str, results: HttpResults, watch: EngineConfig | None) -> frozenset[str]:
    """Return the models whose rows count, for a load or for a `watch`; empty: all."""
    listed = results[MODELS].json()
    related = related_models(model, listed)
    return related if watch is None else watched_models(listed, related, config=watch)


async def _facts(
    engine: Engine, scraper: MetricsScraper | None, results: HttpResults, *, url: str, model: str
) -> EngineFacts:
    fallback = results if scraper is not None and scraper.pages.url == url else None
    from_metrics, missing = await read_static_facts(scraper, fallback=fallback)
    known = engine.facts(results).merged_with(from_metrics)
    return engine_facts(engine, known, url=url, model=model, missing=missing)


async def _loaded_handle(server: AttachedServer, clock: Clock, *, config: EngineConfig) -> EngineHandle:
    """Return the handle of a server that gets a load."""
    engine, scraper, missing = server.engine, server.scraper, server.facts.not_exported
    unread = missing == GAUGES and engine.name == FALLBACK and config.metrics_url is None  # not an error
    handle = EngineHandle(engine, server.facts, client=server.client, clock=clock, scraper=None if unread else scraper)
    handle.metrics_trouble = _unread_metrics(scraper, server.probed) if unread else None
    handle.remark = server.remark
    return await _with_batch_size(handle, config.max_num_seqs)


def _unread_metrics(scraper: MetricsScraper | None, results: HttpResults) -> str | None:
    """Return why the metrics are unknown, if there is a page that did not arrive in time; None if there is none."""
    paths = () if scraper is None else scraper.reader.paths
    late = [path for path in paths if path in results and results[path].late]
    return f"no metrics: {late[0]} did not arrive in time, so the engine is not measured" if late else None


async def _metrics(
    engine: Engine,
    client: ServerClient,
    *,
    models: frozenset[str],
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
    client: ServerClient, engines: list[Engine], *, clock: Clock, limit: float, on_line: Callable[[LogLine], None]
) -> HttpResults:
    """GET all probe paths, and repeat those that timed out while they could still decide the match.

    `limit` counts the seconds spent waiting for responses; a pause of this process, as on a suspended machine, is none.
    """
    waited = 0.0
    specific = [engine for engine in engines if engine.name != FALLBACK] or engines

    async def get(paths: list[str], timeout: float) -> HttpResults:
        nonlocal waited
        sent_at = clock.now()
        results = await client.get_all(paths, timeout=timeout)
        waited += min(clock.now() - sent_at, timeout)
        return results

    def report_waiting() -> None:
        text = f"waiting for {client.url} to respond: {limit - waited:.0f} s left of --attach-timeout {limit:g}"
        on_line(LogLine(at=clock.now(), text=text, stream="servetop"))

    first = (await get([MODELS], min(REQUEST_TIMEOUT, limit)))[MODELS]
    if first.error and not first.late:
        return {MODELS: first}  # not an HTTP server: the other paths would fail too
    if first.status in (404, 405) and client.server.other is not None:
        first = await _other_reading(client, first)
    if first.late:
        report_waiting()
    results = {**await get(_paths(engines), min(REQUEST_TIMEOUT, limit - waited)), MODELS: first}
    while late := [path for path, result in results.items() if result.late]:
        detected = any(engine.match_score(results) for engine in specific)
        if waited >= limit or (detected and not results[MODELS].late):
            break
        report_waiting()
        results |= await get(late, limit - waited)
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
    """Return all paths by which engines are recognised, but for the list of models, which is read first."""
    paths = [path for engine in engines for path in engine.probe_paths]
    paths += [path for engine in engines if (reader := engine.metrics()) is not None for path in reader.paths]
    return [path for path in paths if path != MODELS]


def _refuse_unresponsive(results: HttpResults, url: str, *, limit: float) -> None:
    errors = [result.error for result in results.values()]
    if all(errors):
        late = all(result.late for result in results.values())
        why = f"no response within {limit:g} s" if late else errors[0]
        longer = "give a longer --attach-timeout, or " if late else ""
        raise EngineError(f"nothing answers at {url} ({why}): is the server up? {longer}try: curl {url}/health")


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


def _recognised(
    engines: list[Engine], results: HttpResults, *, config: EngineConfig, headers: Mapping[str, str] | None, url: str
) -> Engine:
    """Return the engine; EngineError or UsageError if it is not the wanted one, or cannot be used as configured."""
    if not _is_known_without_list(results[MODELS], config, headers=headers):
        refuse_without_key(results[MODELS], url, config=config)
    wanted = None if config.name == AUTO else load_engine(config.name)
    engine = _detect(engines, results, wanted=wanted, url=url)
    _refuse_old(engine, results, url)
    return engine


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


def _is_known_without_list(result: HttpResult, config: EngineConfig, *, headers: Mapping[str, str] | None) -> bool:
    """Whether a rejected request for the list of models does not matter: some keys may not list what they may use."""
    has_credentials = bool(config.api_key_env or headers)
    return bool(config.model) and (result.status == FORBIDDEN or has_credentials)


def _model(engine: Engine, results: HttpResults, *, config: EngineConfig, server: ServerUrl) -> tuple[str, str]:
    """Return the model, and a remark if it is taken as given because the server does not list it."""
    served, result = engine.facts(results).models, results[MODELS]
    why = result.error or f"HTTP {result.status}: {result.redirect or excerpt(result.body)}"
    if not served and not config.model:
        raise EngineError(
            f"{server.where(MODELS)} lists no models ({why}): is that the server's address? or give --model"
        )
    if not config.model:
        return default_model(served), ""
    if not served:
        return config.model, f"{server.where(MODELS)} lists no models ({why}): {config.model!r} is taken as given"
    names = [config.model]
    with suppress(UsageError):  # not an alias: the served name itself, or an error
        names.append(engine.resolve_model(config.model))
    found = next((name for name in names if any(name == each or fnmatchcase(name, each) for each in served)), None)
    if found is not None:
        return found, ""
    listed = f"{server.text} does not serve {config.model!r}: it serves {', '.join(served[:8])}"
    if config.name == FALLBACK:
        return config.model, f"{listed}; {config.model!r} is taken as given"
    raise EngineError(f"{listed}; --engine {FALLBACK} takes a model as given" if engine.name == FALLBACK else listed)
